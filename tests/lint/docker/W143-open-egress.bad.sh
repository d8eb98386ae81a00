#!/bin/sh
docker run --rm agent:1.4
