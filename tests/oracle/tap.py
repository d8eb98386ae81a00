"""TAP output for the test scripts."""


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, truth, name, *details):
        self.count += 1
        self.failed += not truth
        print("%s %d - %s" % ("ok" if truth else "not ok", self.count, name), flush=True)
        if not truth:
            for line in details:
                print("#   %s" % (line,), flush=True)

    def note(self, text):
        print("# %s" % text, flush=True)

    def done(self):
        """Prints the plan; the exit status."""
        print("1..%d" % self.count, flush=True)
        return 1 if self.failed or not self.count else 0
