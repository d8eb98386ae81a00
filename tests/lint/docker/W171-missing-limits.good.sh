#!/bin/sh
docker run --rm -m 1g --cpus 2 --pids-limit=128 agent:1.4
