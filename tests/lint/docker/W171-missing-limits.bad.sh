#!/bin/sh
docker run --rm -m 1g --cpus 2 agent:1.4
