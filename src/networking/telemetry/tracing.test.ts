import { describe, expect, it } from 'vitest';
import type { Config } from '../../model/config/config.ts';
import type { Telemetry, Tracing } from '../../model/kinds/extensions/telemetry.ts';
import { chosenTracing } from './tracing.ts';

function telemetriesWith(...objects: (readonly Tracing[])[]): Config<Telemetry>[] {
  return objects.map((tracing) => ({ spec: { tracing } }) as unknown as Config<Telemetry>);
}

const mesh = { defaultProviders: { tracing: ['zipkin', 'other'] }, enableTracing: true };
const minimalMesh = { defaultProviders: {}, enableTracing: true };

describe('tracing of requests', () => {
  it('requests use the first default provider, or else the tracer in the bootstrap', () => {
    expect(chosenTracing([], mesh, 'CLIENT')).toMatchObject({ provider: 'zipkin', sampling: undefined });
    expect(chosenTracing([], minimalMesh, 'CLIENT')).toMatchObject({ provider: undefined });
    expect(chosenTracing([], { ...minimalMesh, enableTracing: false }, 'CLIENT')).toBeUndefined();
  });

  it('each field is taken from the most specific object', () => {
    const telemetries = telemetriesWith(
      [{ randomSamplingPercentage: 10, customTags: { a: { literal: { value: 'mesh' } } }, enableIstioTags: false }],
      [{ customTags: { b: { literal: { value: 'own' } } } }, { providers: ['third', 'fourth'] }],
    );
    expect(chosenTracing(telemetries, mesh, 'SERVER')).toEqual({
      provider: 'third',
      sampling: 10,
      customTags: { b: { literal: { value: 'own' } } },
      useRequestId: true,
      istioTags: false,
      propagateContext: true,
    });
  });

  it('a rule with a mode applies only to the client side or only to the server side', () => {
    const telemetries = telemetriesWith([{ match: { mode: 'SERVER' }, randomSamplingPercentage: 0 }]);
    expect(chosenTracing(telemetries, mesh, 'SERVER')?.sampling).toBe(0);
    expect(chosenTracing(telemetries, mesh, 'CLIENT')?.sampling).toBeUndefined();
  });

  it('tracing stays off after span reporting is disabled until a more specific object enables it', () => {
    const disabledReporting = [{ disableSpanReporting: true }];
    expect(chosenTracing(telemetriesWith(disabledReporting), mesh, 'CLIENT')).toBeUndefined();
    expect(
      chosenTracing(telemetriesWith(disabledReporting, [{ disableSpanReporting: false }]), mesh, 'CLIENT')?.provider,
    ).toBe('zipkin');
  });
});
