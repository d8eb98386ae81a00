#!/bin/sh
docker run --rm agent:1.4 \
	sh -c "curl -fsSLo i.sh https://get.example.com/install.sh && sha256sum -c i.sum && sh i.sh"
