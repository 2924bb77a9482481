// Reads the files in config/examples.
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type CollectionTag, parseAllDocuments } from 'yaml';
import type { Config } from '../../src/config/schema.js';

const FOLDER = new URL('../../config/examples/', import.meta.url);

export const exampleText = (name: string): string => readFileSync(new URL(name, FOLDER), 'utf8');
export const examplePath = (name: string): string => fileURLToPath(new URL(name, FOLDER));

/** Returns file names relative to the folder. */
export const exampleNames = (ending: string): string[] =>
  readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(ending));

/** The Compose tag that replaces a list instead of extending it. */
const OVERRIDE: CollectionTag = { tag: '!override', collection: 'seq', default: false };

/** Parses all documents in a YAML file. @throws YAMLError for malformed YAML */
export function exampleDocuments(name: string): unknown[] {
  return parseAllDocuments(exampleText(name), { strict: true, uniqueKeys: true, customTags: [OVERRIDE] }).map(
    (document) => {
      for (const problem of [...document.errors, ...document.warnings]) throw problem;
      return document.toJS() as unknown;
    },
  );
}

/** Returns the maximum time in seconds until a stopped proxy exits, including 1 s for its last log lines. */
export const shutdownSeconds = ({ server }: Config): number => server.shutdownTimeoutMs / 1000 + 1;

export interface Probe {
  httpGet: { path: string; port: string };
}
export interface Container {
  image: string;
  env: { name: string; value: string }[];
  envFrom: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  ports: { name: string; containerPort: number }[];
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
  lifecycle: { preStop: { exec: { command: string[] } } };
  resources: { limits: { memory: string } };
}
export interface PodSpec {
  terminationGracePeriodSeconds: number;
  securityContext: { runAsUser: number; runAsGroup: number };
  containers: [Container];
}
type Labels = Record<string, string>;
export interface Deployment {
  metadata: { name: string };
  spec: {
    replicas: number;
    selector: { matchLabels: Labels };
    template: { metadata: { labels: Labels }; spec: PodSpec };
  };
}
export interface Ingress {
  spec: {
    rules: { http: { paths: { backend: { service: { name: string; port: { name: string } } } }[] } }[];
  };
}
export interface RedisSet {
  metadata: { name: string };
  spec: {
    replicas: number;
    template: {
      metadata: { labels: Labels };
      spec: { containers: [{ image: string; args: string[]; resources: { limits: { memory: string } } }] };
    };
  };
}
export interface Service {
  metadata: { name: string };
  spec: { selector: Labels; ports: { name: string; targetPort: string }[] };
}
export interface Budget {
  spec: { minAvailable: number; selector: { matchLabels: Labels } };
}
export interface NetworkPolicy {
  spec: {
    podSelector: { matchLabels: Labels };
    policyTypes: string[];
    ingress: {
      from?: Record<'namespaceSelector' | 'podSelector', { matchLabels: Labels }>[];
      ports: { port: string }[];
    }[];
  };
}
export interface ConfigMap {
  metadata: { name: string };
  data: Record<string, string>;
}
export interface Compose {
  services: {
    proxy: {
      environment: Record<string, string>;
      ports: string[];
      stop_grace_period: string;
      mem_limit: string;
    };
    redis: { image: string; command: string[]; mem_limit: string };
  };
  networks: { default: { ipam: { config: [{ subnet: string; gateway: string }] } } };
}
