// The pictures of README and documentation: pages of the fixtures as Chromium shows them. `make pictures` keeps them.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { start } from './support.js';

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'docs', 'pictures');
let reports;
before(async () => { reports = await start(); });
after(async () => { await reports?.close(); });

// What a picture shows must be in it: name, fixture, height, and a text that it has to contain in full.
const pictures = [
  ['checkup', 'checkup', 760, '.answer'],
  ['audit', 'audit', 760, 'h1'],
  ['report', 'sweep', 900, 'h1'],
];

for (const [name, fixture, height, shown] of pictures) {
  test(`the picture ${name} shows the beginning of its page`, async () => {
    const page = await reports.open(fixture, { viewport: { width: 1040, height }, colorScheme: 'light', deviceScaleFactor: 1 });
    try {
      await page.waitForLoadState('networkidle');
      const box = await page.locator(shown).first().boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 1040 && box.y + box.height <= height, `${shown} is not in the picture`);
      const picture = await page.screenshot();
      assert.ok(picture.length < 300_000, `${picture.length} bytes`);
      if (process.env.MYDYNO_WRITE_PICTURES) {
        mkdirSync(folder, { recursive: true });
        await page.screenshot({ path: join(folder, `${name}.png`) });
      }
    } finally {
      await page.context().close();
    }
  });
}
