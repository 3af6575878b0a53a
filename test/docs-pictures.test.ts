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
const shownPictures = picturesOf(page);
const pages = ['README.md', ...readdirSync(docs).map((file) => `docs/${file}`)].filter((file) => file.endsWith('.md'));
const shownAnywhere = pages.flatMap((file) =>
  [...readFileSync(join(docs, '..', file), 'utf8').matchAll(/pictures\/([\w-]+\.\w+)/g)].map(([, name]) => name!),
);

describe('each picture in docs/state-machines.md shows the current machine', () => {
  it.each(shownPictures)('docs/pictures/%s.svg is current', async (name) => {
    let drawnText = '';
    const output = {
      out: (text: string) => {
        drawnText += text;
      },
      error: () => {},
    };
    await drawDiagram(name, { format: 'svg' }, output);
    const file = join(folder, `${name}.svg`);
    mkdirSync(folder, { recursive: true });
    if (update) writeFileSync(file, drawnText);
    expect(existsSync(file), `${file} is missing: run with UPDATE_PICTURES=1 and review it`).toBe(true);
    expect(drawnText === readFileSync(file, 'utf8'), `${file} is out of date: run with UPDATE_PICTURES=1`).toBe(true);
  });

  it('docs/state-machines.md shows the machines of the main tasks', () => {
    expect(shownPictures).toEqual(
      expect.arrayContaining(['agent', 'supervisor', 'epoch', 'cert-watcher', 'push', 'ads-connection']),
    );
  });

  it('docs/state-machines.md links to the definition of each machine', () => {
    const files = namedMachines.filter(({ name }) => shownPictures.includes(name)).map(({ file }) => file);
    expect(files.filter((file) => !page.includes(`(../${file})`) || !existsSync(join(docs, '..', file)))).toEqual([]);
  });

  it('docs/pictures contains no picture that is on no page', () => {
    const stale = readdirSync(folder).filter((file) => !shownAnywhere.includes(file));
    if (update) for (const file of stale) rmSync(join(folder, file));
    expect(update ? [] : stale).toEqual([]);
  });
});
