import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { images } from './images.ts';

interface Stage {
  readonly layers: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
}

/** Layers and settings of each stage of the Dockerfile, including those of its base stage. */
function stages(): ReadonlyMap<string, Stage> {
  const found = new Map<string, Stage>();
  const [, ...texts] = readFileSync(join(import.meta.dirname, 'Dockerfile'), 'utf8').split(/^FROM /m);
  for (const text of texts) {
    const [, base = '', name = ''] = /^(?:--\S+ )?(\S+) AS (\S+)$/m.exec(text) ?? [];
    const layers = [...text.matchAll(/^COPY --from=build \/layers\/(\w+)\/ \/$/gm)].map(([, layer = '']) => layer);
    const settings = [...text.matchAll(/^(ENV|WORKDIR|USER|ENTRYPOINT) (.*)$/gm)].map(([, key = '', value = '']) => [
      key,
      value,
    ]);
    const inherited = found.get(base);
    found.set(name, {
      layers: [...(inherited?.layers ?? []), ...layers],
      settings: { ...inherited?.settings, ...Object.fromEntries(settings) },
    });
  }
  return found;
}

test.each(images)('the Dockerfile builds image $tag with the same layers, user and command as build-image', (image) => {
  const stage = stages().get(image.tag);
  expect(stage?.layers.toSorted()).toEqual(image.layers.toSorted());
  expect(stage?.settings).toEqual({
    ENV: image.config.Env.join(' '),
    WORKDIR: image.config.WorkingDir,
    USER: image.config.User,
    ENTRYPOINT: JSON.stringify(image.config.Entrypoint),
  });
});
