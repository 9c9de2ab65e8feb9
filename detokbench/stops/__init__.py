"""Stop strings: so far over tokens, as SGLang's scheduler finds them.

Everything here takes a ``decode`` callable, so that it can be measured with a tokenizer and tested
without one.
"""
