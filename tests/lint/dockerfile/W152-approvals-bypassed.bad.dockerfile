FROM node:22.1 AS base
USER 1000
ENTRYPOINT ["gemini", "--yolo"]
