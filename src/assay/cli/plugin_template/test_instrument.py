import gc

from template_name.instrument import TemplateNameInstrument

from assay.testing import InstrumentContract


class TestInstrument(InstrumentContract):
    instrument = "template_name.instrument:TemplateNameInstrument"
    options = {"generation": 2}


def test_a_collection_is_counted():
    instrument = TemplateNameInstrument(generation=2)

    state = instrument.start(None)
    gc.collect()

    assert instrument.stop(state).measurements == {"gc_collections": 1}
