FROM node:22.1 AS base
RUN <<EOF
set -e
curl -fsSLO https://get.example.com/install.sh
EOF
USER 1000
CMD ["claude"]
