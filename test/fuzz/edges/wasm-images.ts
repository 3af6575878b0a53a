/** Random content of registries and pull secrets: each reader rejects it with an Error, or returns a valid result. */

import { imageOfIndex, moduleLayerOf, parseManifest } from '../../../src/agent/wasm/image/image-manifest.ts';
import { parseImageUrl } from '../../../src/agent/wasm/image/image-reference.ts';
import { parseChallenges } from '../../../src/agent/wasm/image/registry-challenge.ts';
import { credentialsFor } from '../../../src/agent/wasm/image/registry-credentials.ts';
import { tarFile } from '../../../src/agent/wasm/image/tar-file.ts';
import { dockerConfig, mediaTypes, tarOf } from '../../harness/image-registry.ts';
import type { Draw } from '../../random-config/draw.ts';
import { mutatedValue, oddText } from '../grammar/breaking-words.ts';
import { mutatedBytes } from '../grammar/bytes.ts';
import { withinCpuLimit } from './thinking.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const password = 'a-password-of-a-registry';

/** @returns description of the result; throws if a reader throws something other than an Error, or if a message contains a password */
export async function wasmImage(draw: Draw): Promise<string> {
  return draw.pick([manifest, archive, pullSecret, challenge, imageUrl])(draw);
}

/** @returns `undefined` if the reader rejects the input */
function readOrReject<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) throw error;
    if (error.message.includes(password)) throw new Error('a message has the password');
    return undefined;
  }
}

function manifest(draw: Draw): string {
  const layer = { mediaType: draw.pick(Object.values(mediaTypes)), digest, size: draw.pick([0, 1, 2 ** 53, -1]) };
  const platform = { os: draw.pick(['linux', 'unknown', oddText(draw)]), architecture: 'wasm' };
  const manifestDocument = draw.chance(0.5)
    ? { schemaVersion: 2, mediaType: mediaTypes.ociManifest, layers: [layer, layer] }
    : { schemaVersion: 2, manifests: [{ digest, platform }] };
  const json = JSON.stringify(draw.chance(0.8) ? mutatedValue(draw, manifestDocument) : manifestDocument) ?? '';
  const text = draw.chance(0.2) ? mutatedBytes(draw, Buffer.from(json)).toString('utf8') : json;
  withinCpuLimit(text, () => {
    const parsedManifest = readOrReject(() => parseManifest(text));
    if (parsedManifest === undefined) return;
    const namedDigest = readOrReject(() =>
      parsedManifest.kind === 'index'
        ? imageOfIndex(parsedManifest.manifests)
        : moduleLayerOf(parsedManifest.layers).layer.digest,
    );
    if (namedDigest !== undefined && !/^sha256:[0-9a-f]{64}$/.test(namedDigest))
      throw new Error(`digest ${namedDigest}`);
  });
  return text;
}

async function archive(draw: Draw): Promise<string> {
  const entry = () => ({
    name: draw.pick(['plugin.wasm', 'etc/plugin.wasm', 'x', oddText(draw).slice(0, 90)]),
    type: draw.pick(['0', '5', '2', 'L', 'x', 'g', '\0']),
    content: Buffer.from(draw.pick(['', '\0asm', '22 path=etc/plugin.wasm\n', '12 size=9999\n', oddText(draw)])),
    ...(draw.chance(0.2) && { size: draw.pick([0, 1, 511, 513, 2 ** 30]) }),
  });
  const tarArchive = tarOf(draw.list(1, 5, entry));
  const bytes = draw.chance(0.7) ? mutatedBytes(draw, tarArchive) : tarArchive;
  const limits = { maxBytes: 1_000_000, maxEntries: 20 };
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 700) yield bytes.subarray(at, at + 700);
  }
  await withinCpuLimit('archive', async () => {
    let length = 0;
    try {
      for await (const chunk of tarFile(chunks(), 'plugin.wasm', limits)) length += chunk.length;
    } catch (error) {
      readOrReject(() => {
        throw error;
      });
    }
    if (length > bytes.length) throw new Error('more than the archive has');
  });
  return bytes.toString('latin1');
}

function pullSecret(draw: Draw): string {
  const config = JSON.parse(dockerConfig('reg.test', 'robot', password)) as object;
  const json = JSON.stringify(draw.chance(0.8) ? mutatedValue(draw, config) : config) ?? '';
  const text = draw.chance(0.3) ? mutatedBytes(draw, Buffer.from(json)).toString('utf8') : json;
  withinCpuLimit('pull secret', () => readOrReject(() => credentialsFor('reg.test', text)));
  return text;
}

function challenge(draw: Draw): string {
  const parameter = (): string => `${draw.pick(['realm', 'service', 'scope', oddText(draw)])}="${oddText(draw)}"`;
  const challengeText = `${draw.pick(['Bearer', 'Basic', oddText(draw)])} ${draw.list(0, 4, parameter).join(',')}`;
  const text = draw.chance(0.5) ? mutatedBytes(draw, Buffer.from(challengeText)).toString('latin1') : challengeText;
  withinCpuLimit(text, () => {
    for (const { parameters } of parseChallenges(text)) readOrReject(() => URL.parse(parameters.get('realm') ?? ''));
  });
  return text;
}

function imageUrl(draw: Draw): string {
  const urlPart = (validText: string): string => (draw.chance(0.5) ? validText : oddText(draw));
  const url = `oci://${urlPart('reg.test:5000')}/${urlPart('team/plugin')}:${urlPart('v1')}${draw.chance(0.3) ? `@${urlPart(digest)}` : ''}`;
  withinCpuLimit(url, () => {
    const image = readOrReject(() => parseImageUrl(url));
    if (image === undefined) return;
    const { registry, repository, reference } = image;
    // The path of a request contains the repository and nothing else.
    const parsed = URL.parse(`https://${registry}/v2/${repository}/manifests/${reference}`);
    if (parsed !== null && parsed.pathname !== `/v2/${repository}/manifests/${reference}`) {
      throw new Error(`path ${parsed.pathname}`);
    }
  });
  return url;
}
