/** `npm run image -- --output DIR`: builds the container images without a registry, a daemon or root. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ChartpilotError, explainError, messageOf } from '../../src/runtime/errors.ts';
import { packageRoot, packageVersion } from '../../src/runtime/package-root.ts';
import { type Architecture, architectures } from './architecture.ts';
import {
  billOfMaterials,
  bundledPackages,
  type Component,
  debianComponents,
  envoyComponent,
  nodeComponent,
} from './bill-of-materials.ts';
import { writeDebianLayer } from './debian-layer.ts';
import { images, type LayerName, layerNames } from './images.ts';
import { type BaseLayerName, type BaseLayers, baseLayerNames, LayerCache } from './layer-cache.ts';
import { type Compression, imageTimeS, OciLayout } from './oci-layout.ts';
import { writeApplicationLayer, writeEnvoyLayer, writeNodeLayer } from './program-layers.ts';
import { requireLibraries } from './required-libraries.ts';
import { requireTools } from './run-tool.ts';

const help = `Usage: node deploy/image/build-image.ts --output DIR [options]

Builds the images "agent" and "discovery" of this checkout. Needs Debian or Ubuntu with apt, python3-pip, binutils and npm;
neither a container daemon nor root. Equal inputs give equal bytes.

  --output DIR    New or empty directory. Gets oci/ (OCI image layout with both images), agent.cdx.json and
                  discovery.cdx.json (software bills of materials, CycloneDX)
  --arch ARCH     amd64 or arm64 (default: of this machine)
  --name PREFIX   Names of the images: PREFIX/agent:VERSION and PREFIX/discovery:VERSION (default: localhost/chartpilot)
  --cache DIR     Keep the layers debian, node and envoy in DIR, and use those that an earlier build with the same settings kept: the
                  packages of Debian are then those of that build. Remove DIR to get current ones
  --compression TYPE
                  gzip or none, for a cluster of this machine (default: gzip)
  --layers        Write the files of each layer to DIR/debian, DIR/node, DIR/envoy and DIR/application instead of oci/
  --help          Print this text

Environment: SOURCE_DATE_EPOCH, the time of all files in seconds since 1970 (default: 1980-01-01).
`;

interface Options {
  readonly output: string;
  readonly architecture: Architecture;
  readonly name: string;
  readonly onlyLayers: boolean;
  readonly compression: Compression;
  readonly cache: string | undefined;
}

const log = (line: string): void => console.error(line);

const flags = {
  output: { type: 'string' },
  arch: { type: 'string', default: process.arch === 'x64' ? 'amd64' : process.arch },
  name: { type: 'string', default: 'localhost/chartpilot' },
  layers: { type: 'boolean', default: false },
  cache: { type: 'string' },
  compression: { type: 'string', default: 'gzip' },
  help: { type: 'boolean', default: false },
} as const;

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: flags }).values;
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', messageOf(error));
  }
}

function optionsOf(args: readonly string[]): Options | undefined {
  const values = parseFlags(args);
  if (values.help) return undefined;
  const architecture = architectures.find(({ name }) => name === values.arch);
  if (architecture === undefined) {
    throw new ChartpilotError('FLAG_INVALID', `--arch: must be amd64 or arm64, got ${JSON.stringify(values.arch)}`);
  }
  if (values.output === undefined) throw new ChartpilotError('FLAG_INVALID', '--output: must name a directory');
  const output = resolve(values.output);
  if (existsSync(output) && readdirSync(output).length > 0) {
    throw new ChartpilotError('FLAG_INVALID', `--output: must be a new or empty directory, got ${output}`);
  }
  const { name, cache, compression } = values;
  if (compression !== 'gzip' && compression !== 'none') {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--compression: must be gzip or none, got ${JSON.stringify(compression)}`,
    );
  }
  return { output, architecture, name, onlyLayers: values.layers, compression, cache: cache && resolve(cache) };
}

type FolderOf = (layer: LayerName) => string;

/** @returns the content of each layer */
async function writeBaseLayers(
  folderOf: FolderOf,
  scratch: string,
  architecture: Architecture,
): Promise<Record<BaseLayerName, readonly Component[]>> {
  const checkout = packageRoot();
  for (const name of [...layerNames.map(folderOf), join(scratch, 'apt'), join(scratch, 'npm')]) {
    mkdirSync(name, { recursive: true });
  }
  log('layer debian: downloading packages');
  const packages = writeDebianLayer(folderOf('debian'), join(scratch, 'apt'), architecture);
  log('layer node: downloading the npm package');
  writeNodeLayer(folderOf('node'), join(scratch, 'npm'), checkout, architecture);
  await writeEnvoyLayer(folderOf('envoy'), architecture, log);
  requireLibraries(baseLayerNames.map(folderOf), architecture);
  return {
    debian: debianComponents(packages),
    node: [nodeComponent(checkout, architecture)],
    envoy: [envoyComponent(architecture)],
  };
}

/** Adds the base layers, from the cache if it has them. */
async function addBaseLayers(
  layout: OciLayout,
  { architecture, compression, cache }: Options,
  folderOf: FolderOf,
  scratch: string,
): Promise<BaseLayers> {
  const inputs = { architecture, compression, timeS: imageTimeS(), checkout: packageRoot() };
  const cached = cache === undefined ? undefined : new LayerCache(cache, inputs);
  const found = cached?.read(layout.blobs);
  if (found !== undefined) return found;
  requireTools(['apt-get', 'dpkg-deb', 'npm', 'python3', `${architecture.triplet}-strip`]);
  const components = await writeBaseLayers(folderOf, scratch, architecture);
  const add = async (name: BaseLayerName) => ({
    layer: await layout.addLayer(folderOf(name)),
    components: components[name],
  });
  const layers = { debian: await add('debian'), node: await add('node'), envoy: await add('envoy') };
  cached?.write(layers, layout.blobs);
  return layers;
}

async function buildImages(options: Options): Promise<void> {
  const { output, architecture, name, onlyLayers, compression } = options;
  requireTools(['tar']);
  process.umask(0o022);
  await import('../../src/cli/build-unless-built.ts');
  const scratch = mkdtempSync(join(tmpdir(), 'chartpilot-image-'));
  try {
    const folderOf = (layer: LayerName): string => join(onlyLayers ? output : scratch, layer);
    if (onlyLayers) {
      await writeBaseLayers(folderOf, scratch, architecture);
      writeApplicationLayer(folderOf('application'), packageRoot());
      return;
    }
    const layout = new OciLayout(join(output, 'oci'), imageTimeS(), compression);
    const base = await addBaseLayers(layout, options, folderOf, scratch);
    writeApplicationLayer(folderOf('application'), packageRoot());
    const layers = {
      ...base,
      application: {
        layer: await layout.addLayer(folderOf('application')),
        components: bundledPackages(packageRoot()),
      },
    };
    for (const layer of layerNames) {
      const { unpackedBytes, size, digest } = layers[layer].layer;
      log(`layer ${layer}: ${inMegabytes(unpackedBytes)} unpacked, ${inMegabytes(size)} compressed, ${digest}`);
    }
    const version = packageVersion();
    for (const image of images) {
      const { digest } = layout.addImage({
        name: `${name}/${image.tag}:${version}`,
        tag: image.tag,
        architecture: architecture.name,
        layers: image.layers.map((layer) => layers[layer].layer),
        config: image.config,
        labels: {
          'org.opencontainers.image.title': image.title,
          'org.opencontainers.image.version': version,
          'org.opencontainers.image.licenses': 'Apache-2.0',
        },
      });
      const text = billOfMaterials({
        name: `${name}/${image.tag}`,
        version,
        digest,
        timeS: imageTimeS(),
        components: image.layers.flatMap((layer) => layers[layer].components),
      });
      writeFileSync(join(output, `${image.tag}.cdx.json`), text);
      const bytes = image.layers.reduce((sum, layer) => sum + layers[layer].layer.unpackedBytes, 0);
      log(`image ${name}/${image.tag}:${version}: ${inMegabytes(bytes)} unpacked, ${digest}`);
    }
    layout.finish();
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function inMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

try {
  const options = optionsOf(process.argv.slice(2));
  if (options === undefined) process.stdout.write(help);
  else await buildImages(options);
} catch (error) {
  log(explainError(error));
  process.exitCode = 1;
}
