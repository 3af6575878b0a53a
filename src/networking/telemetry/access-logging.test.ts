import { describe, expect, it } from 'vitest';
import type { Config } from '../../model/config/config.ts';
import type { AccessLogging, Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import { chosenLogs, meshLog } from './access-logging.ts';

function telemetriesWith(...objects: (readonly AccessLogging[])[]): Config<Telemetry>[] {
  return objects.map((accessLogging) => ({ spec: { accessLogging } }) as unknown as Config<Telemetry>);
}

const defaults = { defaultProviders: { accessLogging: ['a', 'b'] } };
const none = { defaultProviders: {} };

describe('access logs of a connection', () => {
  it('access logs of the mesh are the default', () => {
    expect(chosenLogs([], defaults, 'CLIENT')).toEqual([{ target: 'a' }, { target: 'b' }]);
    expect(chosenLogs([], none, 'CLIENT')).toEqual([{ target: meshLog }]);
    expect(chosenLogs(telemetriesWith([]), none, 'SERVER')).toEqual([{ target: meshLog }]);
  });

  it('a rule without a provider disables access logs on its side of connections', () => {
    const off: AccessLogging = { disabled: true, match: { mode: 'CLIENT' } };
    expect(chosenLogs(telemetriesWith([off]), defaults, 'CLIENT')).toEqual([]);
    expect(chosenLogs(telemetriesWith([off]), none, 'CLIENT')).toEqual([]);
    expect(chosenLogs(telemetriesWith([off]), none, 'SERVER')).toEqual([{ target: meshLog }]);
    expect(chosenLogs(telemetriesWith([off]), defaults, 'SERVER')).toEqual([{ target: 'a' }, { target: 'b' }]);
  });

  it('a more specific object enables access logs again', () => {
    const telemetries = telemetriesWith([{ disabled: true }], [{ disabled: false, filter: 'x' }]);
    expect(chosenLogs(telemetries, none, 'CLIENT')).toEqual([{ target: meshLog, filter: 'x' }]);
  });

  it("a rule with providers replaces the mesh's access logs", () => {
    expect(chosenLogs(telemetriesWith([{ providers: ['c'] }]), defaults, 'CLIENT')).toEqual([{ target: 'c' }]);
    expect(chosenLogs(telemetriesWith([{ providers: ['c'] }]), none, 'SERVER')).toEqual([{ target: 'c' }]);
  });

  it("a rule without providers applies to the previous rule's providers", () => {
    const telemetries = telemetriesWith([{ providers: ['c', 'd'] }], [{ filter: 'x' }]);
    expect(chosenLogs(telemetries, defaults, 'CLIENT')).toEqual([
      { target: 'c', filter: 'x' },
      { target: 'd', filter: 'x' },
    ]);
  });

  it('the last rule for a provider applies', () => {
    const telemetries = telemetriesWith(
      [{ providers: ['c'], filter: 'x' }, { providers: ['d'] }],
      [{ providers: ['c'], disabled: true }],
    );
    expect(chosenLogs(telemetries, none, 'CLIENT')).toEqual([{ target: 'd' }]);
  });

  it('access logs are disabled if rules name providers only for the other side of connections', () => {
    expect(chosenLogs(telemetriesWith([{ providers: ['c'], match: { mode: 'SERVER' } }]), none, 'CLIENT')).toEqual([]);
  });
});
