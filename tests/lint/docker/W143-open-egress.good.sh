#!/bin/sh
docker run --rm --network none agent:1.4
