import { describe, it } from 'vitest';
import { sinkChecks } from '../../src/relay/contract/checks.ts';
import { type Engine, serveEngine } from './engine.ts';
import { createKafka } from './fake-kafka.ts';
import { createMeilisearch } from './fake-meilisearch.ts';
import { createOpenSearch } from './fake-opensearch.ts';
import { createTypesense } from './fake-typesense.ts';

/* The modules for engines that cannot be had here, against doubles that refuse what the engines refuse. */

const ENGINES: Readonly<Record<string, () => Engine>> = {
  opensearch: createOpenSearch,
  meilisearch: createMeilisearch,
  typesense: createTypesense,
  kafka: createKafka,
};

describe.each(Object.entries(ENGINES))('the example for %s', (_, create) => {
  const checks = sinkChecks({ effectivelyOnce: true, prepare: () => serveEngine(create()) });
  for (const { name, run } of checks) it(name, run);
});
