// The values of a chart as a table, and the button that switches between chart and table.
import type { ChartProps } from "./chart";
import { Button } from "./components/button";
import { Table } from "./components/table";
import { number, shortDate, translator } from "./i18n";

const t = translator("common");

/** The values of a chart as a table. */
export function ChartTable({ title, days, series, format = number, dayLabel = shortDate }: ChartProps) {
  return (
    <Table
      caption={`${title}: ${t("chart.table")}`}
      rows={days.map((day, index) => ({ day, place: index }))}
      keyOf={({ day }) => day}
      columns={[
        { name: "day", label: t("chart.day"), cell: ({ day }) => dayLabel(day) },
        ...series.map((oneSeries) => ({
          name: oneSeries.name,
          label: oneSeries.name,
          isNumber: true,
          cell: ({ place }: { place: number }) => {
            const value = oneSeries.values[place];
            return value === null || value === undefined ? "–" : format(value);
          },
        })),
      ]}
    />
  );
}

/** The button that switches between chart and table. */
export function TableSwitch({ title, isTable, onChange }: { title: string; isTable: boolean; onChange: (isTable: boolean) => void }) {
  return (
    <Button tight variant="plain" aria-pressed={isTable} aria-label={t("chart.table.of", { title })} onClick={() => onChange(!isTable)}>
      {t("chart.table")}
    </Button>
  );
}
