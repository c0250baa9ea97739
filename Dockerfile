# An image of catchword: docker build -t catchword . See docs/containers.md.
FROM node:20-bookworm AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages packages
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.package.json tsconfig.build.json build.mjs ./
COPY src src
# Only transpiles: the checks of types are those of `npm run check`.
RUN npm run transpile

FROM node:20-bookworm AS modules
WORKDIR /app
COPY package.json package-lock.json ./
# Without the workspaces in packages, which are in dist.
RUN npm ci --omit=dev --ignore-scripts --workspaces=false
# The only script that an installed package needs; it compiles SQLite where no binary can be downloaded.
RUN npm rebuild better-sqlite3
# More packages, such as mariadb: docker build --build-arg PACKAGES=mariadb. npm 11 leaves out a package that package.json
# also names as a development or an optional peer dependency.
ARG PACKAGES=
RUN [ -z "$PACKAGES" ] || { npm pkg delete devDependencies peerDependencies peerDependenciesMeta && npm install --no-save --omit=dev --ignore-scripts $PACKAGES; }

FROM node:20-bookworm-slim
ENV NODE_ENV=production CATCHWORD_DB=/data/catalog.db
WORKDIR /app
COPY package.json LICENSE ./
COPY drizzle drizzle
COPY --from=modules /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN install -d -o node -g node -m 0700 /data
USER node
WORKDIR /data
VOLUME /data
EXPOSE 8080
# Roles that run alone answer at CATCHWORD_METRICS_PORT.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.CATCHWORD_METRICS_PORT ?? process.env.CATCHWORD_HTTP_PORT ?? 8080}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/cli.js"]
CMD ["daemon"]
