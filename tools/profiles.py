#!/usr/bin/env python3
"""profiles.py OUT.c FILE...: the shipped profiles as one C table, sorted by name."""
import os
import sys


def quoted(text):
    for line in text.splitlines(keepends=True):
        yield '\t  "%s"' % line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def main(out, files):
    rows = []
    for path in sorted(files, key=os.path.basename):
        with open(path, encoding="ascii") as f:
            text = f.read()
        name = os.path.basename(path).removesuffix(".writ")
        rows.append('\t{ "%s",\n%s,\n\t  %d },' % (name, "\n".join(quoted(text)), len(text)))
    with open(out, "w", encoding="ascii") as f:
        f.write('#include "lang/policy.h"\n\n'
                "const struct policy_profile policy_profiles[] = {\n%s\n"
                "\t{ NULL, NULL, 0 },\n};\n\n"
                "const struct policy_profile *lang_profile_find(struct sv name)\n{\n"
                "\tfor (const struct policy_profile *p = policy_profiles; p->name; p++)\n"
                "\t\tif (sv_is(name, p->name))\n\t\t\treturn p;\n"
                "\treturn NULL;\n}\n" % "\n".join(rows))


main(sys.argv[1], sys.argv[2:])
