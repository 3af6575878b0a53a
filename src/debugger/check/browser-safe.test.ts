/** The page checks and explains traces in the browser with the same code. */
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { packageRoot } from '../../runtime/package-root.ts';

const pure = [
  'trace/cause-chain',
  'check/check',
  'diagram/parse',
  'check/message',
  'check/message-kinds',
  'check/message-window',
  'check/check-report-text',
  'check/sequence-mermaid',
  'trace/trace-line',
];

test.each(pure)('%s needs no API that a browser lacks', async (name) => {
  const { outputFiles } = await build({
    entryPoints: [join(packageRoot(), 'src/debugger', `${name}.ts`)],
    bundle: true,
    write: false,
    // Fails on every import of a Node module.
    platform: 'browser',
    format: 'esm',
    logLevel: 'silent',
  });
  expect(outputFiles[0]!.text).not.toMatch(/\b(process|Buffer|require|setImmediate|__dirname)\b\s*[.([]/);
});
