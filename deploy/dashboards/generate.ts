/** Generates Grafana and Prometheus files from the definitions. */
import { stringify } from 'yaml';
import { type Alert, alerts, type Dashboard, dashboards, type Panel, type Variable } from './definitions.ts';

const datasource = { type: 'prometheus', uid: '$datasource' };
/** Grafana's grid has 24 columns. */
const [panelWidth, panelHeight] = [8, 8];

/** Contents by name of a file in this folder. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [name, dashboard] of Object.entries(dashboards)) {
    files.set(`${name}.json`, `${JSON.stringify(grafanaDashboard(dashboard), null, 1)}\n`);
  }
  return files.set('alerts.yaml', alertRules());
}

function grafanaDashboard({ uid, title, variables, rows }: Dashboard): object {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      gridPos: { x: 0, y: y++, w: 24, h: 1 },
      panels: [],
    });
    for (const [place, panel] of row.panels.entries()) {
      const x = (place * panelWidth) % 24;
      panels.push(grafanaPanel(panel, panels.length + 1, { x, y, w: panelWidth, h: panelHeight }));
      if (x + panelWidth === 24 || place === row.panels.length - 1) y += panelHeight;
    }
  }
  return {
    ...{ uid, title: `chartpilot: ${title}`, tags: ['chartpilot'], schemaVersion: 39, editable: true, refresh: '15s' },
    time: { from: 'now-30m', to: 'now' },
    templating: {
      list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }, ...variables.map(grafanaVariable)],
    },
    panels,
  };
}

function grafanaPanel({ title, unit, queries, description }: Panel, id: number, gridPos: object): object {
  return {
    ...{ id, type: 'timeseries', title, ...(description && { description }), datasource, gridPos },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(({ expression, legend }, place) => ({
      ...{ refId: String.fromCharCode(65 + place), datasource, expr: expression, legendFormat: legend },
    })),
  };
}

function grafanaVariable({ name, metric, label }: Variable): object {
  const query = `label_values(${metric}, ${label})`;
  return {
    ...{ name, type: 'query', datasource, query: { query, refId: name }, definition: query, refresh: 2, sort: 1 },
    ...{ includeAll: true, multi: true, allValue: '.*', current: { text: 'All', value: '$__all' } },
  };
}

export function alertExpression({ value, condition }: Alert): string {
  return `${/\bor\b/.test(value) ? `(${value})` : value} ${condition}`;
}

function alertRules(): string {
  const rules = alerts.map((alert) => ({
    alert: alert.name,
    expr: alertExpression(alert),
    for: alert.for,
    labels: { severity: alert.severity },
    annotations: { summary: alert.summary, runbook: `docs/${alert.page}` },
  }));
  return stringify({ groups: [{ name: 'chartpilot', rules }] }, { lineWidth: 0 });
}
