"""stub"""


def pipeline_figure(record):
    return None
