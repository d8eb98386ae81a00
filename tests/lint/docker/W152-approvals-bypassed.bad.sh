#!/bin/sh
docker run --rm agent:1.4 \
	claude --dangerously-skip-permissions -p "fix the tests"
