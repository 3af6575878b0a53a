import { expect, test } from 'vitest';
import { renderTemplate } from '../../src/runtime/go-template/render-template.ts';
import { TemplateError } from '../../src/runtime/go-template/template-error.ts';
import { GoStruct, type GoValue, goValueOf } from '../../src/runtime/go-template/values.ts';
import { sized } from '../harness/size-of-run.ts';
import { type Rendered, renderWithGo, type TemplateCase } from './go-oracle.ts';
import { randomTemplates } from './random-templates.ts';

const buildLimitMs = 600_000;

function valueOf(json: unknown): GoValue {
  const { $struct, ...plainFields } = json as { $struct?: Record<string, unknown> };
  if ($struct !== undefined) {
    const fields = Object.entries($struct).sort(([a], [b]) => (a < b ? -1 : 1));
    return new GoStruct(
      'struct',
      fields.map(([name, value]) => [name, goValueOf(value)]),
    );
  }
  return goValueOf(
    Object.fromEntries(
      Object.entries(plainFields).map(([key, value]) => [key, isStruct(value) ? valueOf(value) : value]),
    ),
  );
}

function isStruct(value: unknown): boolean {
  return typeof value === 'object' && value !== null && '$struct' in value;
}

function rendered({ template, data }: TemplateCase): Rendered {
  try {
    return { output: renderTemplate(template, valueOf(data)) };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return { error: `${error.line}: ${error.message}` };
  }
}

/**
 * Whether both have equal output, or both fail: in the same line if during execution. Go reports parse errors in other lines, because this engine
 * tokenizes the complete template first.
 */
function hasSameResult(ownResult: Rendered, gos: Rendered): boolean {
  if ('output' in ownResult || 'output' in gos)
    return 'output' in ownResult && 'output' in gos && ownResult.output === gos.output;
  const line = /^template: [^:]*:(\d+):\d+: executing/.exec(gos.error)?.[1];
  return line === undefined || ownResult.error.startsWith(`${line}:`);
}

const count = sized({ quick: 300, short: 300, full: 20_000 });

test(`the engine renders ${count} random templates as Go's text/template does, or fails in the same line`, {
  timeout: buildLimitMs,
}, async () => {
  const cases = randomTemplates(count, 34);
  const gos = await renderWithGo(cases);
  const different = cases.flatMap((one, index) => {
    const ownResult = rendered(one);
    return hasSameResult(ownResult, gos[index]!) ? [] : [{ template: one.template, ours: ownResult, gos: gos[index] }];
  });
  expect(different.slice(0, 5)).toEqual([]);
  const outputs = gos.filter((one) => 'output' in one && one.output !== '').length;
  expect(outputs).toBeGreaterThan(count / 2);
});
