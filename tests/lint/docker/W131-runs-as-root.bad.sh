#!/bin/sh
podman run --rm \
	--user root \
	agent:1.4
