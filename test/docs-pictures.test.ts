import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { namedMachines } from '../src/debugger/statechart/named-machines.ts';
import { drawDiagram } from '../src/debugger/visualize/diagram-command.ts';

const update = process.env.UPDATE_PICTURES === '1';
const docs = join(import.meta.dirname, '../docs');
const folder = join(docs, 'pictures');
const page = readFileSync(join(docs, 'state-machines.md'), 'utf8');
const picturesOf = (text: string): string[] =>
  [...text.matchAll(/\(pictures\/([\w-]+)\.svg\)/g)].map(([, name]) => name!);
/** The page says which pictures there are. */
const shown = picturesOf(page);
const pages = ['README.md', ...readdirSync(docs).map((file) => `docs/${file}`)].filter((file) => file.endsWith('.md'));
const shownAnywhere = pages.flatMap((file) =>
  [...readFileSync(join(docs, '..', file), 'utf8').matchAll(/pictures\/([\w-]+\.\w+)/g)].map(([, name]) => name!),
);

describe('the pictures in docs/state-machines.md are of the machines as they are', () => {
  it.each(shown)('%s', async (name) => {
    let drawn = '';
    const output = {
      out: (text: string) => {
        drawn += text;
      },
      error: () => {},
    };
    await drawDiagram(name, { format: 'svg' }, output);
    const file = join(folder, `${name}.svg`);
    mkdirSync(folder, { recursive: true });
    if (update) writeFileSync(file, drawn);
    expect(existsSync(file), `${file} is missing: run with UPDATE_PICTURES=1 and look at it`).toBe(true);
    expect(drawn === readFileSync(file, 'utf8'), `${file} is out of date: run with UPDATE_PICTURES=1`).toBe(true);
  });

  it('shows the machines that a person asks about first', () => {
    expect(shown).toEqual(
      expect.arrayContaining(['agent', 'supervisor', 'epoch', 'cert-watcher', 'push', 'ads-connection']),
    );
  });

  it('says of each where its definition is', () => {
    const files = namedMachines.filter(({ name }) => shown.includes(name)).map(({ file }) => file);
    expect(files.filter((file) => !page.includes(`(../${file})`) || !existsSync(join(docs, '..', file)))).toEqual([]);
  });

  it('keeps no picture that no page shows', () => {
    const stale = readdirSync(folder).filter((file) => !shownAnywhere.includes(file));
    if (update) for (const file of stale) rmSync(join(folder, file));
    expect(update ? [] : stale).toEqual([]);
  });
});
