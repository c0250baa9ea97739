/** The address of a store at a port of this machine. Options may be appended: `?` for the first one of a store, then `&`. */
export const ADDRESSES = {
  postgres: (port: number) => `postgres://postgres:secret@127.0.0.1:${port}/postgres`,
  mysql: (port: number) => `mysql://root:secret@127.0.0.1:${port}/shop`,
  redis: (port: number) => `redis://127.0.0.1:${port}`,
  nats: (port: number) => `nats://127.0.0.1:${port}`,
  webhook: (port: number) => `webhook+http://127.0.0.1:${port}/#allow=private`,
};

export type Protocol = keyof typeof ADDRESSES;
