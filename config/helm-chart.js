// Generates the Helm chart from the Kubernetes files, by replacing names and the settings in values.yaml.
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

const FOLDER = new URL('examples/kubernetes/', import.meta.url);
const NAME = 'handle-resolver-proxy';
const RELEASE = '{{ .Release.Name }}';

const kubernetesText = (name) => readFileSync(new URL(`${name}.yaml`, FOLDER), 'utf8');
const onlyDocument = (name) => parseAllDocuments(kubernetesText(name))[0].toJS();

/** Puts text into the template only under a condition. */
const onlyIf = (condition, text) => `{{- if ${condition} }}\n${text}{{- end }}\n`;

const HAS_NATIVE = 'or .Values.env.NATIVE_TCP_PORT .Values.env.NATIVE_UDP_PORT';
const REDIS_LINES = `          env:
            - { name: REDIS_URL, value: 'redis://${NAME}-redis:6379' }
`;
const NATIVE_PORTS = '    - ports: [{ port: native-tcp }, { port: native-udp, protocol: UDP }]\n';

/** Conditions of files that are not for everybody. */
const CONDITIONS = { ingress: '.Values.ingress.host', 'native-service': HAS_NATIVE, redis: '.Values.redis' };

/** Replacements by file, as pairs of a pattern and its template. */
const CHANGES = {
  configmap: [[/^data:\n(?: .*\n)+/m, 'data: {{ toJson .Values.env }}\n']],
  deployment: [
    [/(?<=replicas: )\d+/, '{{ .Values.replicas }}'],
    [/(?<=image: ).*/, '{{ .Values.image }}'],
    [REDIS_LINES, onlyIf('.Values.redis', REDIS_LINES.replace(NAME, RELEASE))],
    [`secretRef: { name: ${NAME} }`, 'secretRef: { name: {{ .Values.secret }} }'],
    [/(?<=requests: ).*/, '{{ toJson .Values.resources.requests }}'],
    [/(?<=limits: ).*/, '{{ toJson .Values.resources.limits }}'],
    // Restarts the pods when the ConfigMap changes, because they read it only at startup.
    [
      '    metadata:\n',
      '    metadata:\n      annotations: { checksum/config: {{ toJson .Values.env | sha256sum }} }\n',
    ],
  ],
  ingress: [
    [/annotations:\n(?: {4}.*\n)+/, 'annotations: {{ toJson .Values.ingress.annotations }}\n'],
    [/(?<=ingressClassName: ).*/, '{{ .Values.ingress.className }}'],
    [
      /\[.*\], secretName: [\w-]+/,
      '[{{ toJson .Values.ingress.host }}], secretName: {{ .Values.ingress.tlsSecret }}',
    ],
    [/(?<=- host: ).*/, '{{ toJson .Values.ingress.host }}'],
  ],
  'native-service': [],
  'network-policy': [
    [/from:\n.*\n.*ingress-nginx }/, 'from: {{ toJson .Values.networkPolicy.http }}'],
    [/from:\n.*\n.*monitoring }/, 'from: {{ toJson .Values.networkPolicy.admin }}'],
    [NATIVE_PORTS, onlyIf(HAS_NATIVE, NATIVE_PORTS)],
  ],
  'pod-disruption-budget': [],
  redis: [],
  service: [],
};

/** @throws Error if a Kubernetes file lacks text to replace */
function templateOf(name) {
  let text = kubernetesText(name).replace(/^ *#.*\n/gm, '');
  for (const [found, instead] of CHANGES[name]) {
    const changed = text.replace(found, () => instead);
    if (changed === text) throw new Error(`${name}.yaml has no ${found}`);
    text = changed;
  }
  const condition = CONDITIONS[name];
  const wanted = condition === undefined ? text : onlyIf(condition, text);
  return `# Made from config/examples/kubernetes/${name}.yaml by \`npm run docs\`.\n${wanted}`
    .replace(/^( *)app\.kubernetes\.io\/name: .*$/gm, `$&\n$1app.kubernetes.io/instance: ${RELEASE}`)
    .replace(new RegExp(`(?<=(?:[ {]n|N)ame: )${NAME}`, 'g'), RELEASE);
}

/**
 * Returns default values that reproduce the Kubernetes files, with the comments of the ConfigMap. What each service needs differently,
 * or not at all, is a comment: Helm would merge an example with the values of a user.
 */
function valuesText() {
  const { spec } = onlyDocument('deployment');
  const [{ image, resources }] = spec.template.spec.containers;
  const [http, admin] = onlyDocument('network-policy').spec.ingress;
  const [, data] = /^data:\n([^]*)/m.exec(kubernetesText('configmap'));
  const env = data.replace(/^ {2}(?=UPSTREAM_URL|NATIVE_)/gm, '  # ');
  const { metadata, spec: ingress } = onlyDocument('ingress');
  return `# Made from config/examples/kubernetes by \`npm run docs\`; explanations there are not repeated here.
replicas: ${spec.replicas}
# Build it with the Dockerfile of this project and push it to your registry.
image: ${image}
# A Secret with ADMIN_TOKEN; make it with
#   kubectl create secret generic ${NAME} --from-literal=ADMIN_TOKEN=$(openssl rand -hex 24)
secret: ${NAME}
# Each key is a variable of config/default.yaml. Helm merges these with yours: set a key to null to leave it out.
# UPSTREAM_URL is required. With a native port, there is a Service of type LoadBalancer for port 2641.
env:
${env}# Whether to run a Redis for the replicas. With your own: false, and REDIS_URL in the Secret.
redis: true
# Without a host there is no Ingress.
ingress:
  host: ''
  className: ${ingress.ingressClassName}
  tlsSecret: ${ingress.tls[0].secretName}
  annotations: ${JSON.stringify(metadata.annotations)}
# Peers of the NetworkPolicy that reach the public port and the admin port.
networkPolicy:
  http: ${JSON.stringify(http.from)}
  admin: ${JSON.stringify(admin.from)}
resources: ${JSON.stringify(resources)}
`;
}

const chartText = ({ version, description }) => `apiVersion: v2
name: ${NAME}
description: ${description}
type: application
version: ${version}
appVersion: ${version}
`;

/** Returns the chart's files by path, except values.schema.json. */
export const chartFiles = (project) => ({
  'Chart.yaml': chartText(project),
  'values.yaml': valuesText(),
  ...Object.fromEntries(Object.keys(CHANGES).map((name) => [`templates/${name}.yaml`, templateOf(name)])),
});
