FROM node:22.1 AS base
RUN <<EOF
set -e
curl -fsSL https://get.example.com/install.sh | sudo -E bash -
EOF
USER 1000
CMD ["claude"]
