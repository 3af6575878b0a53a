import * as E from 'fp-ts/lib/Either.js';
import { expect, test } from 'vitest';
import { InjectorSettings } from './injector-settings.ts';

const values = JSON.stringify({ global: { hub: 'example.com', tag: '1' } });

interface SettingsFixture {
  readonly settings: InjectorSettings;
  /** Logged events with fields. */
  readonly lines: { readonly event: string; readonly fields: Record<string, unknown> }[];
  readonly set: (data: unknown) => void;
}

function createSettings(data: unknown): SettingsFixture {
  let current = data;
  let notifyChanged = (): void => {};
  const lines: SettingsFixture['lines'] = [];
  const log = (event: string, fields: object = {}): void => void lines.push({ event, fields: { ...fields } });
  const settings = new InjectorSettings({
    configMap: {
      ...{ location: 'mesh/istio-sidecar-injector', readData: () => current, firstList: new Promise(() => {}) },
      onChanged: (listener) => {
        notifyChanged = listener;
      },
    },
    revision: 'canary',
    log: { info: log, warn: log },
  });
  const set = (next: unknown): void => {
    current = next;
    notifyChanged();
  };
  set(data);
  return { settings, lines, set };
}

test('injector settings consist of both keys, and a change applies immediately', () => {
  const { settings, lines, set } = createSettings({ values, config: 'policy: disabled' });
  expect(settings.currentSettings).toMatchObject({
    right: { revision: 'canary', config: { policy: 'disabled' }, values: { hub: 'example.com' } },
  });
  set({ values, config: 'policy: enabled' });
  expect(settings.currentSettings).toMatchObject({ right: { config: { policy: 'enabled' } } });
  expect(lines.map(({ event }) => event)).toEqual(['injection.settingsLoaded', 'injection.settingsLoaded']);
});

test('invalid injector settings keep the last valid content, and each error is logged once with field and code', () => {
  const { settings, lines, set } = createSettings({ values });
  const invalidData = { values: '{"global": {"hub": 1, "tag": "1"}}', config: 'policy: [1]' };
  set(invalidData);
  set({ ...invalidData });
  expect(settings.currentSettings).toMatchObject({ right: { values: { hub: 'example.com' } } });
  expect(lines.slice(1).map(({ event, fields }) => [event, fields.field])).toEqual([
    ['injection.settingsRejected', 'config: policy'],
    ['injection.settingsRejected', 'values: global.hub'],
  ]);
  expect(lines.slice(1).every(({ fields }) => String(fields.code) !== 'undefined')).toBe(true);
});

test('missing injector settings are reported with the ConfigMap and the key', () => {
  const { settings, set, lines } = createSettings({ config: 'policy: enabled' });
  expect(settings.currentSettings).toEqual(
    E.left(expect.stringMatching(/ConfigMap mesh\/istio-sidecar-injector .*values: /)),
  );
  set(undefined);
  expect(settings.currentSettings).toEqual(E.left(expect.stringContaining('mesh/istio-sidecar-injector')));
  expect(lines.at(-1)?.event).toBe('injection.settingsMissing');
});

test('injection is unavailable after the ConfigMap is removed', () => {
  const { settings, set } = createSettings({ values });
  set(undefined);
  expect(E.isLeft(settings.currentSettings)).toBe(true);
});
