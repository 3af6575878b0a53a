import { describe, expect, it } from 'vitest';
import type { Config } from '../../model/config/config.ts';
import type { AccessLogging, Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import { chosenLogs, meshLog } from './access-logging.ts';

function given(...objects: (readonly AccessLogging[])[]): Config<Telemetry>[] {
  return objects.map((accessLogging) => ({ spec: { accessLogging } }) as unknown as Config<Telemetry>);
}

const defaults = { defaultProviders: { accessLogging: ['a', 'b'] } };
const none = { defaultProviders: {} };

describe('the logs of a connection', () => {
  it('are those of the mesh where nobody says anything', () => {
    expect(chosenLogs([], defaults, 'CLIENT')).toEqual([{ target: 'a' }, { target: 'b' }]);
    expect(chosenLogs([], none, 'CLIENT')).toEqual([{ target: meshLog }]);
    expect(chosenLogs(given([]), none, 'SERVER')).toEqual([{ target: meshLog }]);
  });

  it('are turned off by a rule that names no provider, for its side of connections', () => {
    const off: AccessLogging = { disabled: true, match: { mode: 'CLIENT' } };
    expect(chosenLogs(given([off]), defaults, 'CLIENT')).toEqual([]);
    expect(chosenLogs(given([off]), none, 'CLIENT')).toEqual([]);
    expect(chosenLogs(given([off]), none, 'SERVER')).toEqual([{ target: meshLog }]);
    expect(chosenLogs(given([off]), defaults, 'SERVER')).toEqual([{ target: 'a' }, { target: 'b' }]);
  });

  it('are turned on again by a narrower object', () => {
    const telemetries = given([{ disabled: true }], [{ disabled: false, filter: 'x' }]);
    expect(chosenLogs(telemetries, none, 'CLIENT')).toEqual([{ target: meshLog, filter: 'x' }]);
  });

  it('are those of the providers that are named, and no more those of the mesh', () => {
    expect(chosenLogs(given([{ providers: ['c'] }]), defaults, 'CLIENT')).toEqual([{ target: 'c' }]);
    expect(chosenLogs(given([{ providers: ['c'] }]), none, 'SERVER')).toEqual([{ target: 'c' }]);
  });

  it('are, for a rule that names no provider, those of the rule before it', () => {
    const telemetries = given([{ providers: ['c', 'd'] }], [{ filter: 'x' }]);
    expect(chosenLogs(telemetries, defaults, 'CLIENT')).toEqual([
      { target: 'c', filter: 'x' },
      { target: 'd', filter: 'x' },
    ]);
  });

  it('are of a provider as the last rule for it says', () => {
    const telemetries = given(
      [{ providers: ['c'], filter: 'x' }, { providers: ['d'] }],
      [{ providers: ['c'], disabled: true }],
    );
    expect(chosenLogs(telemetries, none, 'CLIENT')).toEqual([{ target: 'd' }]);
  });

  it('are none when rules name providers for the other side only', () => {
    expect(chosenLogs(given([{ providers: ['c'], match: { mode: 'SERVER' } }]), none, 'CLIENT')).toEqual([]);
  });
});
