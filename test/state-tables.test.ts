/** docs/state-tables.md is made of the charts as they are, and the supervisor's table is full. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { supervisorMachine } from '../machines/agent/envoy/supervisor.machine.ts';
import { eventTableOf } from '../src/debugger/statechart/event-table.ts';
import { namedMachines } from '../src/debugger/statechart/named-machines.ts';
import { drawDiagram } from '../src/debugger/visualize/diagram-command.ts';
import { statechartOf } from '../src/runtime/trace/statechart.ts';

const update = process.env.UPDATE_TABLES === '1';
const file = join(import.meta.dirname, '../docs/state-tables.md');
const introduction = `# State by event

What each state of the charts makes of each event that its peers send it: first \`pilot-agent\`'s, then \`pilot-discovery\`'s. Made by
\`UPDATE_TABLES=1 vitest run test/state-tables.test.ts\`; a test fails when it is out of date. One table by itself:
\`chartpilot diagram supervisor --format table\`.

- \`→\` leads to another state, \`•\` is acted on where it is, \`–\` is ignored on purpose;
- in brackets: that hangs on a condition, and below the table stands which;
- \`×\` is not expected: the event is lost, the actor goes on as it was, and the trace has a diagnostic (\`unexpected\`), which the
  log repeats as a warning. The explorer holds each run against this: within its bounds no such event comes.

States in which a chart cannot rest (they are left in the step in which they are entered) and final ones have no row.
`;

const within = (folder: string) => namedMachines.filter(({ file: path }) => path.startsWith(folder));
const charts = [...within('machines/agent/'), ...within('machines/discovery/')];

async function tableOf(name: string): Promise<string> {
  let text = '';
  await drawDiagram(name, { format: 'table' }, { out: (more) => (text += more), error: () => {} });
  return text;
}

describe('docs/state-tables.md', () => {
  it('has the tables of the charts as they are', async () => {
    const sections = [introduction];
    for (const { name } of charts) sections.push(`## ${name}\n\n${await tableOf(name)}`);
    const text = sections.join('\n');
    if (update) writeFileSync(file, text);
    expect(existsSync(file) && readFileSync(file, 'utf8') === text, `${file}: run with UPDATE_TABLES=1`).toBe(true);
  });
});

describe('the table of the supervisor', () => {
  const { events, states } = eventTableOf(statechartOf(supervisorMachine));
  const cells = states.flatMap(({ path, cells: row }) =>
    row.map(({ tried }, index) => ({ path, event: events[index]!, tried })),
  );

  it('says of each condition what follows where it does not hold', () => {
    const open = cells.filter(({ tried }) => tried.length > 0 && tried.at(-1)!.guard !== undefined);
    // Nobody but the newest can become live.
    expect([...new Set(open.map(({ event }) => event))]).toEqual(['epoch.live']);
  });

  it('has a place for the end of an epoch wherever there may be one', () => {
    const without = cells.filter(
      ({ event, tried }) => /^epoch\.(exited|failed|unkillable)$/.test(event) && tried.length === 0,
    );
    expect([...new Set(without.map(({ path }) => path))]).toEqual(['idle', 'waiting for configuration']);
  });

  it('ignores nothing for all states at once', () => {
    const { on } = supervisorMachine.config as { on: Record<string, object> };
    expect(Object.values(on).filter((reaction) => Object.keys(reaction).length === 0)).toEqual([]);
  });
});
