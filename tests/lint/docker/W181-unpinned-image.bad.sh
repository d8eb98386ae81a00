#!/bin/sh
set -eu
docker run --rm -i \
	--user 1000:1000 \
	--network none \
	--memory 1g --cpus 1 --pids-limit 128 \
	--security-opt no-new-privileges \
	agent:latest claude
