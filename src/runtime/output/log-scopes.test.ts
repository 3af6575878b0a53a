import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../package-root.ts';
import { scopeOfActor, unknownScopes } from './log-scopes.ts';

const sources = (): string[] =>
  globSync('src/**/*.ts', { cwd: packageRoot(), exclude: (name) => name.endsWith('.test.ts') || name === 'gen' });
const textOf = (path: string): string => readFileSync(join(packageRoot(), path), 'utf8');

test('the list of log scopes contains every scope that the source files use', () => {
  const scopes = sources().flatMap((path) =>
    [...textOf(path).matchAll(/(?:\.scope|#log)\('([^']+)'/g)].map(([, scope]) => scope!),
  );
  expect(scopes.length).toBeGreaterThan(15);
  expect(unknownScopes(scopes)).toEqual([]);
});

test('the log scope is known for every actor with logged events', () => {
  // Repeated failures have their own scopes.
  const [table = ''] = textOf('src/discovery/monitor/event-log.ts').split('const lastReceivers');
  const events = [...table.matchAll(/^ {2}'([a-z-]+\.[a-z-]+)': /gm)].map(([, type]) => type!);
  expect(events.length).toBeGreaterThan(15);
  const [, catalogue = ''] = textOf('docs/events.md').split('## pilot-discovery');
  const rows = catalogue.split('\n').filter((row) => events.some((type) => row.startsWith(`| \`${type}\` |`)));
  const senders = rows.flatMap((row) => [...row.matchAll(/(?:\| |<br>)`([a-z][\w/-]*) → /g)].map(([, name]) => name!));
  expect(rows).toHaveLength(events.length);
  expect(senders.length).toBeGreaterThanOrEqual(events.length);
  const scopes = senders.map((name) => scopeOfActor(name.replaceAll(/-N\b/g, '-1')));
  // The feed of a registry reports to its registry and logs no lines.
  expect(unknownScopes(scopes.filter((scope) => scope !== 'registry/feed'))).toEqual([]);
});

test('actors of one kind share a log scope', () => {
  expect(['key-set-12', 'registry-1/feed', 'push'].map(scopeOfActor)).toEqual(['key-set', 'registry/feed', 'push']);
});

test('unknownScopes returns each unknown scope once', () => {
  expect(unknownScopes(['adz', 'ads', 'adz', 'all'])).toEqual(['adz']);
});
