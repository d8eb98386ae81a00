#!/bin/sh
docker run --rm -u 1000 agent:1.4
