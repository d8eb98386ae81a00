#!/bin/sh
set -eu
docker run --rm -i \
	--user 1000:1000 \
	--network none \
	--memory 1g --cpus 1 --pids-limit 128 \
	--security-opt no-new-privileges \
	-e ANTHROPIC_API_KEY=sk-ant-api03-Vb7Qm2xKpL9sTz4RwYc8Hd3Nf6Jg1Ua5Ee \
	agent:1.4 claude
