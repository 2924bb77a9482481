// The container image, built from the Dockerfile and run.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { buildImage, runImage } from '../support/image.js';
import { itWithRoot } from '../support/programs.js';

/** Timeout of the test, whose build downloads packages and compiles src. */
const BUILD_MS = 1_800_000;

describe('container image', () => {
  itWithRoot(
    ['buildah', 'runc', 'dpkg-query'],
    'runs unprivileged on a read-only file system, responds, is healthy and stops with code 0',
    async () => {
      const image = await buildImage();
      expect(image.config).toMatchObject({ User: '10001:10001', Entrypoint: ['tini', '--'] });
      expect(existsSync(join(image.root, image.config.WorkingDir, 'dist/sbom.json'))).toBe(true);
      const demo = await startDemoServer();
      const [port, adminPort] = [await freePort(), await freePort()];
      const container = await runImage(image, {
        UPSTREAM_URL: demo.url,
        HOST: '127.0.0.1',
        PORT: String(port),
        ADMIN_PORT: String(adminPort),
      });
      await expect.poll(container.output).toContain('"probe succeeded"');
      const read = await ask(`http://127.0.0.1:${port}`, '/api/handles/21.T11998/page');
      expect([read.status, read.headers['cache-status']]).toEqual([200, expect.stringContaining('fwd=miss')]);
      expect(await container.execute('id', '-u')).toBe('10001');
      const [kind, ...check] = image.config.Healthcheck.Test;
      expect(kind).toBe('CMD');
      await container.execute(...check);
      expect(await container.stop()).toBe(0);
      expect(container.output()).toContain('"stopped"');
    },
    BUILD_MS,
  );
});
