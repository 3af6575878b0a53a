import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { event, header, traceText } from '../../../test/fixtures/traces.ts';
import { formatTraceLine } from '../../runtime/trace/trace.ts';
import { memorySource } from './memory-source.ts';
import { singleFile } from './single-file.ts';

async function page(...traces: readonly string[]): Promise<string> {
  const sources = traces.map((trace, number) => memorySource(`trace ${number}`, trace));
  let html = '';
  for await (const chunk of singleFile({ sources })) html += chunk;
  return html;
}

function element(html: string, id: string): string {
  return new RegExp(`<script type="[^"]+" id="${id}">([^<]*)</script>`).exec(html)![1]!;
}

test('the single-file page contains the sources, their sessions and their traces', async () => {
  const html = await page(traceText(2), traceText(4));
  expect(JSON.parse(element(html, 'chartpilot-sources'))).toEqual([
    { name: 'trace 0', kind: 'file', place: 'trace 0' },
    { name: 'trace 1', kind: 'file', place: 'trace 1' },
  ]);
  expect(element(html, 'chartpilot-trace-0')).toBe(traceText(2));
  expect(element(html, 'chartpilot-trace-1')).toBe(traceText(4));
  expect(JSON.parse(element(html, 'chartpilot-session-1')).charts.light).toContain('<svg');
});

test('the single-file page escapes markup in a trace', async () => {
  const hostile = { ...event(1), event: { type: 'light.changed', text: '</script><script>alert(1)</script><!--' } };
  const html = await page(formatTraceLine(header) + formatTraceLine(hostile));
  const trace = element(html, 'chartpilot-trace-0').trim().split('\n');
  expect(trace.map((line) => JSON.parse(line) as unknown)).toEqual([header, hostile]);
  expect(html).not.toContain('alert(1)</script>');
});

test('the single-file page sends no requests and runs only its own script', async () => {
  const html = await page(traceText(1));
  const [, hash] = /script-src 'sha256-([^']+)'/.exec(html)!;
  const script = html.slice(html.indexOf('\n<script>') + 9, html.lastIndexOf('</script>'));
  // The script contains the text of the page, to create files from it.
  expect(html.replace(script, '')).not.toMatch(/<script[^>]* src=|<link[^>]*href="(?!data:)/);
  expect(html).not.toMatch(/# sourceMappingURL=page/);
  expect(createHash('sha256').update(script).digest('base64')).toBe(hash);
  expect(/default-src 'none'/.test(html)).toBe(true);
});
