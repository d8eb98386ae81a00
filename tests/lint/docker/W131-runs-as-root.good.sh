#!/bin/sh
podman run --rm \
	--user 1000 \
	agent:1.4
