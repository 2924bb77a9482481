# Builds the proxy with all tools, then keeps only what it needs to run.

# Pins the base image to its present digest, for a build that can be repeated; later, renews it. Run this line here, and commit the result:
#   BASE=node:24-bookworm-slim; DIGEST=$(docker buildx imagetools inspect $BASE --format '{{.Manifest.Digest}}') && sed -i "s|^ARG BASE=.*|ARG BASE=$BASE@$DIGEST|" Dockerfile
ARG BASE=node:24-bookworm-slim
FROM $BASE AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY config/build.js config/openapi-documents.js config/undici.js config/write-sbom.js ./config/
COPY config/openapi ./config/openapi
COPY src ./src
RUN npm run build && node config/write-sbom.js

# A Handle server in memory for tests of other programs: docker build --target dev-server. Not for production.
FROM build AS dev-server
USER 10001:10001
EXPOSE 8000
CMD ["node", "--enable-source-maps", "dist/main.js", "dev-server", "--host", "0.0.0.0"]

FROM $BASE
# Process 1 has to reap children and hand signals on; node does neither by itself.
RUN apt-get update \
  && apt-get install -y --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
ENV NODE_ENV=production
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force
COPY --from=build /app/dist ./dist
COPY config/default.yaml ./config/default.yaml
COPY config/completion ./config/completion
COPY LICENSE ./

# For cache.snapshot.file, on a volume; a new volume takes over its owner.
RUN install -d -o 10001 -g 10001 -m 700 /var/lib/handle-resolver-proxy

# A number, because Kubernetes (runAsNonRoot) cannot tell whether a name is root; high enough to belong to
# nobody on the host. Nothing else in the image is writable for it.
USER 10001:10001
EXPOSE 8080

# Liveness, not readiness: a container is not to be restarted because the Handle server is down.
# The admin listener stays on the loopback address of the container; set ADMIN_HOST=0.0.0.0
# and ADMIN_TOKEN to let an orchestrator or Prometheus reach it. Set its port by ADMIN_PORT, not in the file, or this check misses it.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9090}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]

ENTRYPOINT ["tini", "--"]
CMD ["node", "--enable-source-maps", "dist/main.js"]
