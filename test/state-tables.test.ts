/** docs/state-tables.md is generated from the current charts, and the supervisor's table is complete. */
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

Reaction of each state to each event of its peers, first for the charts of \`pilot-agent\`, then for those of \`pilot-discovery\`.
\`UPDATE_TABLES=1 vitest run test/state-tables.test.ts\` generates this page; a test fails if it is out of date. To print one table:
\`chartpilot diagram supervisor --format table\`.

- \`→\`: transition to another state, \`•\`: actions without a transition, \`–\`: ignored on purpose.
- Brackets: depends on a condition, which is listed below the table.
- \`×\`: not expected. The event is dropped, the state is kept, and the trace has a diagnostic (\`unexpected\`), which is logged as a
  warning. The explorer checks that no such event occurs within its bounds.

Transient states (left in the step in which they are entered) and final states have no row.
`;

const machinesUnder = (folder: string) => namedMachines.filter(({ file: path }) => path.startsWith(folder));
const charts = [...machinesUnder('machines/agent/'), ...machinesUnder('machines/discovery/')];

async function tableOf(name: string): Promise<string> {
  let text = '';
  await drawDiagram(name, { format: 'table' }, { out: (chunk) => (text += chunk), error: () => {} });
  return text;
}

describe('docs/state-tables.md', () => {
  it('docs/state-tables.md has the tables of the current charts', async () => {
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
    row.map(({ triedTransitions }, index) => ({ path, event: events[index]!, tried: triedTransitions })),
  );

  it("the supervisor's table has a result for false conditions of every event except epoch.live", () => {
    const guardedCells = cells.filter(({ tried }) => tried.length > 0 && tried.at(-1)!.guard !== undefined);
    // Only the newest epoch can become live.
    expect([...new Set(guardedCells.map(({ event }) => event))]).toEqual(['epoch.live']);
  });

  it("the supervisor's table handles the exit of an epoch in every state where an epoch can exit", () => {
    const ignoredCells = cells.filter(
      ({ event, tried }) => /^epoch\.(exited|failed|unkillable)$/.test(event) && tried.length === 0,
    );
    expect([...new Set(ignoredCells.map(({ path }) => path))]).toEqual(['idle', 'waiting for configuration']);
  });

  it("the supervisor's chart ignores no event in all states", () => {
    const { on } = supervisorMachine.config as { on: Record<string, object> };
    expect(Object.values(on).filter((reaction) => Object.keys(reaction).length === 0)).toEqual([]);
  });
});
