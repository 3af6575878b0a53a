/** The page checks and explains traces in the browser, so these modules must not depend on Node. */
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

test.each(pure)('%s uses no Node API, so that the page can import the module', async (name) => {
  const { outputFiles } = await build({
    entryPoints: [join(packageRoot(), 'src/debugger', `${name}.ts`)],
    bundle: true,
    write: false,
    // The bundler fails on every import of a Node module.
    platform: 'browser',
    format: 'esm',
    logLevel: 'silent',
  });
  expect(outputFiles[0]!.text).not.toMatch(/(?<!")\b(process|Buffer|require|setImmediate|__dirname)\b\s*[.([]/);
});
