#!/usr/bin/env python3
"""Checks the SARIF that test_lint prints for what SARIF 2.1.0 requires."""
import json
import subprocess
import sys

LEVELS = {"none", "note", "warning", "error"}


def need(condition, what):
    if not condition:
        sys.exit(f"sarif_check: {what}")


def check_rule(rule, seen):
    need(isinstance(rule.get("id"), str) and rule["id"], "a rule without an id")
    need(rule["id"] not in seen, f"rule {rule['id']} twice")
    seen.add(rule["id"])
    for member in ("shortDescription", "fullDescription", "help"):
        need(isinstance(rule[member]["text"], str) and rule[member]["text"], f"{rule['id']}.{member}")
    need(rule["defaultConfiguration"]["level"] in LEVELS, f"{rule['id']} level")


def check_result(result, rules):
    need(result["ruleId"] in rules, f"{result['ruleId']} is not among the rules")
    need(result["level"] in LEVELS, "level of a result")
    need(isinstance(result["message"]["text"], str) and result["message"]["text"], "message text")
    need(len(result["locations"]) == 1, "one location")
    place = result["locations"][0]["physicalLocation"]
    uri = place["artifactLocation"]["uri"]
    need(" " not in uri and not uri.startswith("/"), f"uri {uri}")
    region = place["region"]
    need(all(isinstance(region[k], int) and region[k] >= 1
             for k in ("startLine", "startColumn", "endColumn")), "region")
    need(region["endColumn"] > region["startColumn"], "an empty region")


def main():
    printed = subprocess.run([sys.argv[1], "print", "sarif"], check=True, capture_output=True).stdout
    log = json.loads(printed.decode("utf-8"))
    need(log["version"] == "2.1.0", "version")
    need(log["$schema"].endswith("sarif-2.1.0.json"), "$schema")
    need(isinstance(log["runs"], list) and len(log["runs"]) == 1, "runs")
    run = log["runs"][0]
    need(run["tool"]["driver"]["name"], "driver name")
    rules = set()
    for rule in run["tool"]["driver"]["rules"]:
        check_rule(rule, rules)
    need(run["invocations"][0]["executionSuccessful"] is True, "executionSuccessful")
    need(len(run["results"]) > 5, "results")
    for result in run["results"]:
        check_result(result, rules)


main()
