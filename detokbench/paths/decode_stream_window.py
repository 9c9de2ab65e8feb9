class DecodeStreamWindow:
    def __init__(self, rust, ids, skip_special_tokens):
        self.r = rust
        self.ids = list(ids or [])
        self.skip = skip_special_tokens
        self.prefix = ""
        self.pi = 0
        self.ids_handed = 0

    def d(self, ids):
        self.ids_handed += len(ids)
        return self.r.decode(ids, skip_special_tokens=self.skip)

    def step(self, i):
        self.ids_handed = 0
        if not self.prefix and self.ids:
            n = self.d(self.ids)
            if not n.endswith("\ufffd"):
                self.prefix = n
                self.pi = len(self.ids)
        self.ids.append(i)
        s = self.d(self.ids)
        if len(s.encode()) > len(self.prefix.encode()) and not s.endswith("\ufffd"):
            if not s.startswith(self.prefix):
                raise Exception("Invalid prefix encountered")
            t = s[len(self.prefix) :]
            pi = len(self.ids) - self.pi
            self.ids = self.ids[self.pi :]
            self.prefix = self.d(self.ids)
            self.pi = pi
            return t
        return None
