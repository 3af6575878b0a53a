import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { SettingsFiles } from '../../config/files/settings-files.ts';
import { MeshConfigs } from '../../config/snapshots/mesh-configs.ts';
import { MeshState } from '../../push/contexts/mesh-state.ts';
import { diagnosticsOf } from './push-status.ts';

function virtualService(name: string, age: number, exportTo = ''): string {
  return `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: ${name}, namespace: shop, creationTimestamp: "2026-01-0${age}T00:00:00Z" }
spec: { hosts: [a.test], ${exportTo} http: [{ route: [{ destination: { host: a.test } }] }] }
---`;
}

it.each([
  ['the older of two public ones', '', 'older', 'second'],
  ['a newer private one rather than an older public one', 'exportTo: ["."],', 'newer', 'first'],
])(
  'push_status states which of two VirtualServices with the same host applies: %s',
  async (_, exportTo, appliedService, other) => {
    const root = mkdtempSync(join(tmpdir(), 'chartpilot-shared-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    const settings = new SettingsFiles(() => {});
    const directory = new MeshConfigs({ mesh: () => settings.mesh, domain: 'cluster.local' });
    const state = new MeshState({ settings, meshConfigs: directory, domain: 'cluster.local', clusterId: 'c' });
    writeFileSync(join(root, 'a.yaml'), virtualService('first', 1) + virtualService('second', 2, exportTo));
    await directory.read([root]);
    state.computeServices();
    state.publishContext({ forced: true, changedKeys: [] });
    expect(diagnosticsOf(state, []).pilot_vservice_dup_domain).toEqual({
      'a.test': {
        message: `shop/first and shop/second: the ${appliedService} one applies to clients of shop`,
        objects: [`VirtualService/shop/${other}`],
      },
    });
  },
);
