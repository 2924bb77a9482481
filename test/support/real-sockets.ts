// Restores node:http, which nock replaces, as a side effect of the import.
import nock from 'nock';

nock.restore();
