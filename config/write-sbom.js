// `npm pack` and the image: writes dist/sbom.json, the libraries of the program with version, hash and licence (CycloneDX).
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const { name } = JSON.parse(readFileSync('package.json', 'utf8'));
const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
const {
  serialNumber: _random,
  metadata,
  components,
  dependencies,
  ...rest
} = JSON.parse(execFileSync('npm', args, { encoding: 'utf8', maxBuffer: 2 ** 26 }));

// npm's `--omit=dev` would also omit what both the program and a development package need, such as commander.
const shipped = components.filter(
  ({ properties }) => !properties.some(({ name }) => name === 'cdx:npm:package:development'),
);
const own = metadata.component['bom-ref'];
const refs = new Set([own, ...shipped.map((component) => component['bom-ref'])]);

const sbom = {
  ...rest,
  // npm takes the name from the folder. Without a time and a serial number, two builds are equal.
  metadata: { ...metadata, timestamp: undefined, component: { ...metadata.component, name } },
  components: shipped,
  dependencies: dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) })),
};
writeFileSync('dist/sbom.json', `${JSON.stringify(sbom, undefined, 2)}\n`);
