// Adapts the web server examples in config/examples to this machine's paths, ports and addresses.
import { join } from 'node:path';
import { exampleText } from './examples.js';

/** The host name in the examples. */
export const NAME = 'hdl.example.org';

export interface Place {
  folder: string;
  port: number;
  plainPort: number;
  /** Address (host:port) of each proxy. */
  backends: string[];
  /** Admin port of each proxy, for health checks; without it, all proxies count as healthy. */
  adminPorts?: number[];
}

interface FrontSetUp {
  /** Returns the content of `front.conf`. */
  config: (place: Place) => string;
  args: (folder: string) => string[];
  /** Returns the arguments to check the configuration instead of serving. */
  check: (folder: string) => string[];
}

const isRoot = process.getuid?.() === 0;

function nginxConfig({ folder, port, plainPort, backends }: Place): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ');
  return exampleText('nginx.conf')
    .replace('worker_processes auto;', 'worker_processes 1;')
    .replace('http {', `http { ${temporary}`)
    .replaceAll(/^.*listen \[::\].*\n/gm, '')
    .replace('listen 80;', `listen 127.0.0.1:${plainPort};`)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace(/ssl_certificate .*;/, `ssl_certificate ${folder}/cert.pem;`)
    .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${folder}/key.pem;`)
    .replace(/^ *server 127\.0\.0\.1:8080(.*);$/m, (_line, options: string) =>
      backends.map((backend) => `server ${backend}${options};`).join('\n'),
    );
}

const nginxArguments = (folder: string): string[] => {
  const user = isRoot ? ' user root;' : '';
  return ['-p', folder, '-c', 'front.conf', '-e', 'stderr', '-g', `daemon off; pid ${folder}/pid;${user}`];
};

function caddyfile({ folder, port, backends, adminPorts }: Place): string {
  const [adminPort, ...otherPorts] = new Set(adminPorts);
  // Caddy checks one port for all proxies.
  const checked = otherPorts.length > 0 ? undefined : adminPort;
  return `{
  admin off
  auto_https off
  storage file_system ${folder}/storage
}
${checked === undefined ? exampleText('Caddyfile') : checkingReadiness(exampleText('Caddyfile'), checked)}`
    .replace(`${NAME} {`, `:${port} {\n\tbind 127.0.0.1\n\ttls ${folder}/cert.pem ${folder}/key.pem`)
    .replace('127.0.0.1:8080', backends.join(' '));
}

/** Follows the comment of the example on instances with `server.shutdownDelay`. */
const checkingReadiness = (example: string, adminPort: number): string =>
  example
    .replace('health_uri /robots.txt', '')
    .replace('# health_uri /readyz', 'health_uri /readyz')
    .replace('# health_port 9090', `health_port ${adminPort}`);

const caddyArguments = (folder: string): string[] => [
  '--adapter',
  'caddyfile',
  '--config',
  join(folder, 'front.conf'),
];

/**
 * Returns directives to load the relevant modules of Debian's defaults, and those that the example enables.
 */
function apacheModules(): string {
  const own = 'mpm_event authz_core alias dir deflate env filter setenvif reqtimeout'.split(' ');
  const [, named = ''] = /a2enmod (.*)/.exec(exampleText('apache.conf')) ?? [];
  // a2enmod enables these as dependencies.
  const needed = ['socache_shmcb', 'proxy', 'slotmem_shm'];
  return [...own, ...needed, ...named.split(' ')]
    .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
    .join('\n');
}

function apacheConfig({ folder, port, plainPort, backends }: Place): string {
  const site = exampleText('apache.conf')
    .replace('*:80', `127.0.0.1:${plainPort}`)
    .replace('*:443', `127.0.0.1:${port}`)
    .replace(/(SSLCertificateFile) .*/, `$1 ${folder}/cert.pem`)
    .replace(/(SSLCertificateKeyFile) .*/, `$1 ${folder}/key.pem`)
    .replace(/^.*BalancerMember http:\/\/127\.0\.0\.1:8080(.*)$/m, (_line, options: string) =>
      backends.map((at) => `BalancerMember http://${at}${options}`).join('\n'),
    );
  return `${apacheModules()}
ServerName localhost
Listen 127.0.0.1:${port}
Listen 127.0.0.1:${plainPort}
PidFile ${folder}/pid
DefaultRuntimeDir ${folder}
ErrorLog ${folder}/error.log
${isRoot ? 'User nobody\nGroup nogroup' : ''}
StartServers 1
AddOutputFilterByType DEFLATE text/html text/plain application/json
${site}`;
}

function haproxyConfig({ folder, port, plainPort, backends, adminPorts }: Place): string {
  const check = (number: number): string =>
    adminPorts === undefined ? 'no-check' : `port ${adminPorts[number]}`;
  const servers = backends.map((at, number) => `    server s${number} ${at} ${check(number)}`);
  return exampleText('haproxy.cfg')
    .replace('bind :80', `bind 127.0.0.1:${plainPort}`)
    .replace('bind :443', `bind 127.0.0.1:${port}`)
    .replace(/crt \S+/, `crt ${folder}/both.pem`)
    .replace(/^ *server one .*$/m, servers.join('\n'));
}

export const FRONTS = {
  nginx: {
    config: nginxConfig,
    args: nginxArguments,
    check: (folder) => ['-t', ...nginxArguments(folder)],
  },
  caddy: {
    config: caddyfile,
    args: (folder) => ['run', ...caddyArguments(folder)],
    check: (folder) => ['adapt', ...caddyArguments(folder), '--validate'],
  },
  apache2: {
    config: apacheConfig,
    args: (folder) => ['-DFOREGROUND', '-d', folder, '-f', 'front.conf'],
    check: (folder) => ['-t', '-d', folder, '-f', 'front.conf'],
  },
  haproxy: {
    config: haproxyConfig,
    args: (folder) => ['-db', '-f', join(folder, 'front.conf')],
    check: (folder) => ['-c', '-f', join(folder, 'front.conf')],
  },
} satisfies Record<string, FrontSetUp>;

export type FrontName = keyof typeof FRONTS;
export const FRONT_NAMES = Object.keys(FRONTS) as FrontName[];
