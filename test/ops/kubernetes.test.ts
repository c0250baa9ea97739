// @module-tag slow
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSettings } from '@catchword/settings/config';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import { expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { VERBS } from '../../src/cli/verb-table.ts';

/* No cluster runs here: the manifest is checked field by field, and decoded by kubectl if it is installed. */

const MANIFEST = fileURLToPath(new URL('../../ops/kubernetes.yaml', import.meta.url));
const FETCHERS = fileURLToPath(new URL('../../ops/kubernetes-fetchers.yaml', import.meta.url));
const LABELS = z.strictObject({ 'app.kubernetes.io/name': z.literal('catchword') });
const METADATA = z.strictObject({ name: z.literal('catchword'), labels: LABELS });
const probe = (port: string) =>
  z.strictObject({
    httpGet: z.strictObject({ path: z.literal('/healthz'), port: z.literal(port) }),
    periodSeconds: z.int().optional(),
    timeoutSeconds: z.int().optional(),
    failureThreshold: z.int().optional(),
  });
/** The page of `/healthz` calls the loading thread stalled after 30 seconds: a probe of this thread waits as long. */
const LIVENESS = probe('probes').extend({ timeoutSeconds: z.literal(30) });
const CONTAINER = z.strictObject({
  name: z.string(),
  image: z.string(),
  args: z.array(z.string()),
  env: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  ports: z.tuple([
    z.strictObject({ name: z.literal('http'), containerPort: z.literal(8080) }),
    z.strictObject({ name: z.literal('probes'), containerPort: z.literal(9464) }),
  ]),
  startupProbe: probe('probes'),
  livenessProbe: LIVENESS,
  readinessProbe: probe('http'),
  resources: z.strictObject({
    requests: z.strictObject({ cpu: z.string(), memory: z.string() }),
    limits: z.strictObject({ memory: z.string() }),
  }),
  securityContext: z.strictObject({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.strictObject({ drop: z.tuple([z.literal('ALL')]) }),
  }),
  volumeMounts: z.array(z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() })),
});
const VOLUME = z.union([
  z.strictObject({
    name: z.string(),
    secret: z.strictObject({ secretName: z.string(), defaultMode: z.literal(0o440) }),
  }),
  z.strictObject({ name: z.string(), emptyDir: z.strictObject({}) }),
]);
const SERVICE = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Service'),
  metadata: METADATA,
  spec: z.strictObject({
    clusterIP: z.literal('None'),
    selector: LABELS,
    ports: z.array(z.strictObject({ name: z.string(), port: z.literal(8080), targetPort: z.literal('http') })),
  }),
});
const STATEFUL_SET = z.strictObject({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('StatefulSet'),
  metadata: METADATA,
  spec: z.strictObject({
    replicas: z.literal(1),
    serviceName: z.literal('catchword'),
    selector: z.strictObject({ matchLabels: LABELS }),
    template: z.strictObject({
      metadata: z.strictObject({ labels: LABELS }),
      spec: z.strictObject({
        enableServiceLinks: z.literal(false),
        automountServiceAccountToken: z.literal(false),
        terminationGracePeriodSeconds: z.literal(45),
        securityContext: z.strictObject({
          runAsNonRoot: z.literal(true),
          runAsUser: z.literal(1000),
          runAsGroup: z.literal(1000),
          fsGroup: z.literal(1000),
          fsGroupChangePolicy: z.literal('OnRootMismatch'),
          seccompProfile: z.strictObject({ type: z.literal('RuntimeDefault') }),
        }),
        containers: z.tuple([CONTAINER]),
        volumes: z.array(VOLUME),
      }),
    }),
    volumeClaimTemplates: z.array(
      z.strictObject({
        metadata: z.strictObject({ name: z.string() }),
        spec: z.strictObject({
          accessModes: z.tuple([z.literal('ReadWriteOnce')]),
          resources: z.strictObject({ requests: z.strictObject({ storage: z.string() }) }),
        }),
      }),
    ),
  }),
});

/** What the manifest of fetchers shares with that of the daemon, whose fields are checked. */
type Pod = Pick<z.infer<typeof STATEFUL_SET>['spec'], 'selector'> & {
  readonly template: z.infer<typeof STATEFUL_SET>['spec']['template'];
};

function manifest() {
  const documents = parseAllDocuments(readFileSync(MANIFEST, 'utf8'), { uniqueKeys: true });
  expect(documents.flatMap((document) => document.errors)).toEqual([]);
  const [service, set, ...others] = documents.map((document): unknown => document.toJS());
  expect(others).toEqual([]);
  return { service: SERVICE.parse(service), set: STATEFUL_SET.parse(set) };
}

it('the manifest for Kubernetes has only known fields, and names only what it declares', () => {
  const { spec } = manifest().set;
  const pod = spec.template.spec;
  const [{ args, volumeMounts }] = pod.containers;
  expect(VERBS.map(({ name }) => name)).toContain(args[0]);
  const declared = [...pod.volumes, ...spec.volumeClaimTemplates.map(({ metadata }) => metadata)];
  expect(volumeMounts.map(({ name }) => name).sort()).toEqual(declared.map(({ name }) => name).sort());
});

it('the manifest for Kubernetes has only valid settings, whose files are those of the command in the documents', () => {
  const { env, volumeMounts } = manifest().set.spec.template.spec.containers[0];
  const directory = mkdtempSync(join(tmpdir(), 'catchword-secrets-'));
  const mounted = volumeMounts.find(({ name }) => name === 'secrets')?.mountPath ?? '';
  const files = env.filter(({ name }) => name.endsWith('_FILE')).map(({ value }) => value.replace(`${mounted}/`, ''));
  for (const file of files) writeFileSync(join(directory, file), 'secret');
  const settings = Object.fromEntries(env.map(({ name, value }) => [name, value.replace(mounted, directory)]));
  expect(unknownSettings(settings)).toEqual([]);
  expect(readSettings(settings, true).problems).toEqual([]);
  const document = readFileSync(new URL('../../docs/containers.md', import.meta.url), 'utf8');
  const command = /kubectl create secret generic catchword (.*)/.exec(document)?.[1] ?? '';
  expect([...command.matchAll(/--from-file=ops\/secrets\/(\S+)/g)].map(([, file]) => file)).toEqual(files);
});

it('the manifest of fetchers is that of the daemon without its disk and its page', () => {
  const { kind, spec } = parse(readFileSync(FETCHERS, 'utf8'), { uniqueKeys: true }) as { kind: string; spec: Pod };
  const { containers, volumes, ...pod } = spec.template.spec;
  const daemon = manifest().set.spec.template.spec;
  expect(kind).toBe('Deployment');
  expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels);
  expect({ ...pod, volumes }).toEqual({ ...daemon, containers: undefined });
  const [{ args, env, resources: _limits, startupProbe, ...container }] = containers;
  const [{ args: _args, env: own, resources, startupProbe: start, ...other }] = daemon.containers;
  const isOfFetcher = ({ name }: { name: string }) => !['mirror', 'http'].includes(name);
  expect({ ...container, name: 'daemon' }).toEqual({
    ...other,
    ports: other.ports.filter(isOfFetcher),
    // It serves no readers.
    readinessProbe: { ...other.readinessProbe, httpGet: other.livenessProbe.httpGet },
    volumeMounts: other.volumeMounts.filter(isOfFetcher),
  });
  expect(startupProbe).toMatchObject({ httpGet: start.httpGet });
  expect(VERBS.map(({ name }) => name)).toContain(args[0]);
  const shared = env.filter(({ name }) => name !== 'REDIS_URL_FILE');
  expect(own).toEqual(expect.arrayContaining(shared));
  expect(unknownSettings(Object.fromEntries(env.map(({ name, value }) => [name, value])))).toEqual([]);
  expect(resources.limits.memory).toBe('1Gi');
});

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

it.skipIf(!hasKubectl)('the manifest for Kubernetes is what kubectl reads of it, field by field', () => {
  const { set } = manifest();
  const [container] = set.spec.template.spec.containers;
  // `set image` decodes the types of Kubernetes, and leaves out fields that they do not have.
  const args = ['set', 'image', '--local', '--filename=-', `${container.name}=other`, '--output=json'];
  const env = { PATH: process.env.PATH, KUBECONFIG: '/dev/null' };
  const { stdout, stderr } = spawnSync('kubectl', args, { input: stringify(set), encoding: 'utf8', env });
  expect(stderr).toBe('');
  container.image = 'other';
  expect(JSON.parse(stdout)).toMatchObject(set);
});
