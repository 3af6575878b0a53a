/** Files and headings that documents and comments name exist. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'vite';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';
import { sourceFiles } from './wording/code-wording.ts';

const root = packageRoot();
const documents = globSync(['*.md', 'docs/*.md', '{deploy,examples,machines,src,test,visualize}/**/README.md'], {
  cwd: root,
})
  .filter((file) => !file.includes('node_modules'))
  .sort();

/** Code spans that start with a folder of the root are paths. */
const path = /^(?:\.ci|bin|deploy|docs|examples|machines|proto|src|test|visualize)\/[\w./*{},-]+$/;

/** Finds relative links, and paths in code style. @returns their targets, from the root */
function filesNamedIn(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  const links = [...text.matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => join(dirname(document), target));
  const code = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span!).filter((span) => path.test(span));
  return [...new Set([...links, ...code.map((span) => span.replace(/\/$/, ''))])];
}

/** Valid fragments of links to the document: its headings in GitHub's form. */
function anchorsOf(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

/** Links to headings that do not exist. */
function lostAnchors(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8');
  return [...text.matchAll(/\]\(([^)\s#:]*)#([^)\s]+)\)/g)]
    .filter(([, file, anchor]) => {
      const target = file === '' ? document : join(dirname(document), file!);
      return target.endsWith('.md') && !anchorsOf(target).includes(anchor!);
    })
    .map(([link]) => link);
}

/** Rows without a header above them: a blank line within a table turns the rest into text. */
function strayRows(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/(?<=^|\n)(?<!\|\n)\|.*(?!\n\|[ :|-]+(?:\n|$))(?=\n|$)/g)].map(([row]) => row);
}

/** Ends of paths in code style, such as `status-server.ts` or `kinds/index.ts`. `x` stands for any name, like `*`. */
function endsOfPathsIn(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span!.replace(/^\.\//, ''));
  return [...new Set(spans.filter((span) => /^[\w./*-]+\.(ts|tsx|mmd|grit)$/.test(span) && !path.test(span)))];
}

const tracked = globSync(
  '{bin,deploy,docs,examples,machines,packages,proto,src,test,visualize}/**/*.{ts,tsx,cjs,mmd,grit,md}',
  {
    cwd: root,
  },
);

function isThere(end: string): boolean {
  const pattern = end.replaceAll(/[.+]/g, '\\$&').replaceAll(/\*|(?<=^|\/)x(?=\\\.)/g, '[^/]+');
  const endPattern = new RegExp(`(?:^|/)${pattern}$`);
  return tracked.some((file) => endPattern.test(file));
}

/** Files that comments of a source name. */
function filesNamedInComments(source: string): string[] {
  const text = readFileSync(join(root, source), 'utf8');
  const comments = /\.[cm]?[jt]sx?$/.test(source)
    ? parseSync(source, text).comments.map(({ value }) => value)
    : [...text.matchAll(/(?<=^|\s)(?:#|%%).*$/gm)].map(([line]) => line);
  return [
    ...new Set(
      comments.flatMap(
        (comment) => comment.match(/(?<![\w./*@$:{}<-])[\w-][\w./*-]*\.(?:tsx?|cjs|mmd|grit|md)\b(?!\.)/g) ?? [],
      ),
    ),
  ];
}

/** Documents of the SPIFFE project. */
const spiffeDocuments = /SPIFFE_|SVID/;

/** Generated on demand. */
const generatedPaths = /^(src\/gen|types|dist)(\/|$)/;

describe('every file that a document names exists', () => {
  test.each(documents)('%s names existing files', (document) => {
    const missingFiles = filesNamedIn(document)
      .filter((file) => !generatedPaths.test(file))
      .filter((file) => !existsSync(join(root, file)) && globSync(file, { cwd: root }).length === 0);
    expect([...missingFiles, ...endsOfPathsIn(document).filter((end) => !isThere(end))]).toEqual([]);
  });

  test.each(documents)('%s has only links to existing headings, and tables with headers', (document) => {
    expect([...lostAnchors(document), ...strayRows(document)]).toEqual([]);
  });

  test('comments name existing files', () => {
    const missingFiles = sourceFiles().flatMap((source) =>
      filesNamedInComments(source)
        .filter(
          (file) =>
            !generatedPaths.test(file) &&
            !spiffeDocuments.test(file) &&
            !existsSync(join(root, file)) &&
            !isThere(file),
        )
        .map((file) => `${source}: ${file}`),
    );
    expect(missingFiles).toEqual([]);
  });

  test('the search finds files that documents name', () => {
    expect(documents).toContain('README.md');
    expect(filesNamedIn('README.md')).toContain('machines/agent/envoy/supervisor.machine.ts');
    expect(filesNamedIn('docs/state-machines.md')).toContain('docs/pictures/supervisor.svg');
  });
});

test('SECURITY.md names a test in each row of its guarantees', () => {
  const text = readFileSync(join(root, 'SECURITY.md'), 'utf8');
  const guarantees = text.slice(text.indexOf('\n## Guarantees'), text.indexOf('\n### Workloads that register'));
  const rows = guarantees.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| Guarantee |'));
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.filter((row) => !/`(src|test|deploy)\/[^`]+\.test\.ts`/.test(row))).toEqual([]);
});
