/** Traces of version 3 are read with the current names of charts, and CHANGELOG.md lists these names. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { eventCatalogue } from '../../../../machines/agent/event-catalogue.ts';
import { eventCatalogue as eventsOfDiscovery } from '../../../../machines/discovery/event-catalogue.ts';
import { packageRoot } from '../../../runtime/package-root.ts';
import { type Statechart, statechartOf } from '../../../runtime/trace/statechart.ts';
import { type TraceHeader, type TraceRecord, traceVersion } from '../../../runtime/trace/trace.ts';
import { namedMachines } from '../../statechart/named-machines.ts';
import { openTrace, readRecords } from '../read-trace.ts';
import { TraceLineReader } from '../trace-line.ts';
import { convertNames } from './converted-names.ts';
import { renamedChildren, renamedContextFields, renamedPayloadFields } from './fields-of-version-3.ts';
import { renamedEvents, renamedInMachines } from './names-of-version-3.ts';
import type { RenameMap } from './renamed.ts';

const changelog = join(packageRoot(), 'CHANGELOG.md');
const update = process.env.UPDATE_TABLES === '1';

const kinds = ['states', 'tags', 'guards', 'actions', 'delays'] as const;
type Kind = (typeof kinds)[number];

function namesOf({ states, transitions }: Statechart): Readonly<Record<Kind, ReadonlySet<string>>> {
  const actions = [
    ...states.flatMap(({ entry = [], exit = [] }) => [...entry, ...exit]),
    ...transitions.flatMap((transition) => transition.actions ?? []),
  ];
  return {
    states: new Set(states.flatMap(({ path }) => path.split('.'))),
    tags: new Set(states.flatMap(({ tags = [] }) => tags)),
    guards: new Set(transitions.flatMap(({ guard = '' }) => guard.match(/[A-Za-z]\w*/g) ?? [])),
    actions: new Set(actions),
    delays: new Set(transitions.filter(({ kind }) => kind === 'timer').map(({ on }) => on)),
  };
}

describe.each(Object.entries(renamedInMachines))(
  'the table of names that were changed in the chart %s',
  (id, renamedNames) => {
    test('contains only new names that the chart uses, and no old name that is still in use', async () => {
      const machine = namedMachines.find(({ name }) => name === id);
      const names = namesOf(statechartOf(await machine!.load()));
      for (const kind of kinds) {
        const table: RenameMap = renamedNames[kind] ?? {};
        const current = new Set(Object.values(table));
        expect([...current].filter((name) => !names[kind].has(name))).toEqual([]);
        expect(Object.keys(table).filter((name) => names[kind].has(name) && !current.has(name))).toEqual([]);
      }
    });
  },
);

test('tables of fields name events of the catalogue and charts that exist', () => {
  const types = new Set([...eventCatalogue, ...eventsOfDiscovery].map(({ type }) => type));
  expect(Object.keys(renamedPayloadFields).filter((type) => !types.has(type))).toEqual([]);
  const charts = new Set(namedMachines.map(({ name }) => name));
  const chartIds = [...Object.keys(renamedContextFields), ...Object.keys(renamedChildren)];
  expect(chartIds.filter((id) => !charts.has(id))).toEqual([]);
});

test('the catalogue of events contains no renamed event', () => {
  const types = new Set(eventCatalogue.map(({ type }) => type));
  expect(Object.keys(renamedEvents).filter((type) => types.has(type))).toEqual([]);
});

describe.each(['version-3-agent', 'version-3-discovery'])('the stored trace %s', (name) => {
  const file = join(packageRoot(), `test/fixtures/traces-of-versions/${name}.trace`);

  test('is read with states and delays of the current charts', async () => {
    const { header, records } = await openTrace(file);
    const { records: read } = await readRecords(records);
    const machines = new Map<string, string>();
    const seenNames: { id: string; kind: Kind; name: string }[] = [];
    for (const record of read) {
      if (record.kind === 'spawn' && record.machine !== undefined) machines.set(record.actor, record.machine);
      for (const [kind, text] of namesIn(record)) {
        const id = machines.get('actor' in record ? record.actor : '') ?? '';
        for (const segment of text.split(/[.|]/)) seenNames.push({ id, kind, name: segment.trim() });
      }
    }
    expect(seenNames.length).toBeGreaterThan(100);
    const unknownNames: object[] = [];
    for (const { id, kind, name: segment } of seenNames) {
      const machine = namedMachines.find((one) => one.name === id);
      if (segment !== '' && !namesOf(statechartOf(await machine!.load()))[kind].has(segment)) {
        unknownNames.push({ id, kind, segment });
      }
    }
    expect(unknownNames).toEqual([]);
    expect(header.version).toBe(traceVersion);
  });

  test('is read with payloads that have the fields of today', async () => {
    const { records } = await openTrace(file);
    const { records: read } = await readRecords(records);
    const oldFields: object[] = [];
    for (const record of read) {
      if (record.kind !== 'event') continue;
      const names: RenameMap = renamedPayloadFields[record.event.type] ?? {};
      const fields = JSON.stringify(record.event).match(/"\w+"(?=:)/g) ?? [];
      const remainingFields = fields.filter((field) => Object.hasOwn(names, field.slice(1, -1)));
      if (remainingFields.length > 0) oldFields.push({ type: record.event.type, left: remainingFields });
    }
    expect(oldFields).toEqual([]);
  });

  test('is read with definitions that contain the names of the current charts', async () => {
    const { header, close } = await openTrace(file);
    await close();
    for (const machine of header.machines) {
      // Charts may have gained names since.
      const current = namesOf(statechartOf(await namedMachines.find((one) => one.name === machine.id)!.load()));
      const unknownNames = Object.entries(namesOf(machine)).flatMap(([kind, names]) =>
        [...names].filter((name) => !current[kind as Kind].has(name)),
      );
      expect({ id: machine.id, unknown: unknownNames }).toEqual({ id: machine.id, unknown: [] });
    }
  });
});

function namesIn(record: TraceRecord): (readonly [Kind, string])[] {
  if (record.kind === 'transition') return [['states', record.from] as const, ['states', record.to] as const];
  if (record.kind === 'timer') return [['delays', record.timer]];
  return record.kind === 'timer-started' ? [['delays', record.timer] as const, ['states', record.state] as const] : [];
}

test('the converter renames events of delays and of final states in the same way as their states', () => {
  const convert = convertNames();
  convert({ kind: 'spawn', actor: 'epoch-0', machine: 'epoch' });
  const eventType = 'xstate.after.holdBack.epoch.running.initializing.held back';
  expect(convert({ kind: 'step', actor: 'epoch-0', on: eventType })).toMatchObject({
    on: 'xstate.after.missingListenersLimit.epoch.running.initializing.missing listeners',
  });
  expect(convert({ kind: 'step', actor: 'epoch-0', on: 'xstate.done.state.epoch.over' })).toMatchObject({
    on: 'xstate.done.state.epoch.exited',
  });
});

test('fields of payloads are converted by the event, at any depth', () => {
  const convert = convertNames();
  const event = { type: 'settings.changed', what: 'meshNetworks', version: 'v2' };
  expect(convert({ kind: 'event', from: 'mesh-networks', to: 'discovery', event })).toMatchObject({
    event: { type: 'settings.changed', name: 'meshNetworks', version: 'v2' },
  });
  const orders = [{ typeUrl: 't', asked: ['a'] }];
  const scheduled = { type: 'responses.ordered', orders };
  expect(convert({ kind: 'event', from: 'a', to: 'b', event: scheduled })).toMatchObject({
    event: { type: 'responses.scheduled', orders: [{ typeUrl: 't', requested: ['a'] }] },
  });
  const other = { type: 'http.failed', what: 'stays' };
  expect(convert({ kind: 'event', from: 'a', to: 'b', event: other })).toMatchObject({ event: other });
});

test('fields of contexts, inputs and outputs are converted by the machine, and the fields of effects by the machine of the parent', () => {
  const convert = convertNames();
  const input = { name: 'epoch-1', doomed: false };
  expect(convert({ kind: 'spawn', actor: 'epoch-1', machine: 'epoch', input })).toMatchObject({
    input: { name: 'epoch-1', isOrphaned: false },
  });
  const change = [
    { path: '/doomed', value: true },
    { path: '/name', value: 'asked' },
  ];
  expect(convert({ kind: 'step', actor: 'epoch-1', on: 'epoch.probe', change })).toMatchObject({
    change: [
      { path: '/isOrphaned', value: true },
      { path: '/name', value: 'asked' },
    ],
  });
  expect(convert({ kind: 'spawn', actor: 'epoch-1/probe', input: { asked: true } })).toMatchObject({
    input: { isProbeRequested: true },
  });
  expect(convert({ kind: 'spawn', actor: 'other', machine: 'unknown', input })).toMatchObject({ input });
});

test('names of child actors are converted by the machine of their parent', () => {
  const convert = convertNames();
  convert({ kind: 'spawn', actor: 'distribution', machine: 'distribution' });
  const spawn = convert({ kind: 'spawn', actor: 'distribution/looking', parent: 'distribution' });
  expect(spawn).toMatchObject({ actor: 'distribution/computing', parent: 'distribution' });
  const event = { type: 'xstate.done.actor.looking' };
  expect(convert({ kind: 'event', from: 'distribution/looking', to: 'distribution', event })).toMatchObject({
    ...{ from: 'distribution/computing', to: 'distribution', event: { type: 'xstate.done.actor.computing' } },
  });
  expect(convert({ kind: 'stop', actor: 'other/looking' })).toMatchObject({ actor: 'other/looking' });
});

test('the converter keeps all names in a trace of another program', () => {
  const convert = convertNames();
  const header: Partial<TraceHeader> = { kind: 'header', version: 3, foreign: true, machines: [] };
  convert({ ...header });
  convert({ kind: 'spawn', actor: 'epoch-0', machine: 'epoch' });
  const line = { kind: 'transition', actor: 'epoch-0', from: 'over', to: 'over', on: 'epoch.look' };
  expect(convert(line)).toEqual(line);
});

test('the converter reports an invalid line of an old trace without throwing an error', () => {
  const header = { kind: 'header', version: 3, program: 'pilot-agent', machines: [] };
  fc.assert(
    fc.property(
      fc.record({ kind: fc.constantFrom('header', 'event', 'transition', 'timer', 'unexpected', 'spawn') }),
      fc.dictionary(
        fc.constantFrom(
          'actor',
          'machine',
          'machines',
          'actors',
          'omits',
          'event',
          'from',
          'to',
          'on',
          'state',
          'timer',
        ),
        fc.jsonValue({ maxDepth: 4 }),
      ),
      (kind, fields) => {
        const reader = new TraceLineReader();
        reader.read(JSON.stringify(header));
        reader.read(JSON.stringify({ ...kind, ...fields, version: 3 }));
      },
    ),
  );
});

function changelogTable(): string {
  const rowsOf = (of: string, kind: string, names: RenameMap = {}): string[] =>
    Object.entries(names)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([oldName, current]) => `| ${of} | ${kind} | \`${oldName}\` | \`${current}\` |`);
  const machineRows = Object.entries(renamedInMachines)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([id, renamedNames]) =>
      kinds.flatMap((kind) => rowsOf(`\`${id}\``, kind.slice(0, -1), renamedNames[kind])),
    );
  const header = ['| chart or event | kind | old name | new name |', '| --- | --- | --- | --- |'];
  const tableRows = (kind: string, table: Readonly<Record<string, RenameMap>>): string[] =>
    Object.entries(table).flatMap(([of, names]) => rowsOf(`\`${of}\``, kind, names));
  return [
    ...[...header, ...rowsOf('all', 'event', renamedEvents), ...machineRows],
    ...tableRows('payload field', renamedPayloadFields),
    ...tableRows('context field', renamedContextFields),
    ...tableRows('child actor', renamedChildren),
  ].join('\n');
}

test('CHANGELOG.md contains the table of renamed names', () => {
  const [head, , tail] = readFileSync(changelog, 'utf8').split(/<!-- (?:end of )?renamed names -->\n/);
  const text = `${head}<!-- renamed names -->\n\n${changelogTable()}\n\n<!-- end of renamed names -->\n${tail}`;
  if (update) writeFileSync(changelog, text);
  expect(readFileSync(changelog, 'utf8') === text, 'run with UPDATE_TABLES=1').toBe(true);
});
