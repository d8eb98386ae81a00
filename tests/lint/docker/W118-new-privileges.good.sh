#!/bin/sh
docker run --rm -u 1000 --security-opt=no-new-privileges agent:1.4
