#!/bin/sh
docker run --rm agent:1.4 \
	claude -p "fix the tests"
